//! `weir plan`.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::output::Output;
use crate::texts;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of `plan`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// Need file: size and rates of each role.
    need: Option<String>,
    /// Need in TOML, instead of a file, for example: [data] size = "4 TiB", iops = 16000.
    need_text: Option<String>,
    /// Observations or outputs of other tools whose load is to be carried.
    #[serde(default)]
    #[schemars(length(max = 64))]
    from: Vec<String>,
    /// Size of the data, for example 4TiB.
    size: Option<String>,
    /// IOPS on the data.
    iops: Option<u64>,
    /// Throughput on the data, for example 200 MB/s.
    throughput: Option<String>,
    /// Request size, for example 8KiB.
    request: Option<String>,
    /// Share of reads, for example 70%.
    reads: Option<String>,
    /// Maximum median latency, for example 3ms.
    latency: Option<String>,
    /// Catalog edition, for example azure-now, aws or gcp.
    edition: Option<String>,
    /// Clouds to compare: azure, aws, gcp, each may have a region: azure=West Europe.
    #[serde(default)]
    compare: Vec<String>,
    /// Families to consider: vm, gp, next-gen-gp, bc, rds or postgres.
    #[serde(default)]
    family: Vec<String>,
    /// Use this machine or instance size only.
    host: Option<String>,
    /// Processors of machines: x64 or arm64.
    architecture: Option<String>,
    /// Minimum number of vCPUs.
    vcpus: Option<u32>,
    /// Minimum memory, for example 64GiB.
    memory: Option<String>,
    /// Region of the prices, for example westeurope.
    region: Option<String>,
    /// Currency of the prices, for example EUR.
    currency: Option<String>,
    /// Find the fastest layout for this price a month.
    budget: Option<String>,
    /// Extra capacity, for example 20%.
    headroom: Option<String>,
    /// Growth of an observed load to plan for, for example 30%.
    growth: Option<String>,
    /// Percentile of the observed samples to size for.
    percentile: Option<f64>,
    /// Layout in use that is extended.
    keep: Option<String>,
    /// Simulates the need on the plan.
    #[serde(default)]
    verify: bool,
    /// Adds the use of every limit and all alternatives.
    #[serde(default)]
    verbose: bool,
    /// Format of the answer.
    #[serde(default)]
    output: Output,
}

impl Call for Plan {
    fn verb(&self) -> Vec<&str> {
        vec!["plan"]
    }

    fn output(&self) -> Output {
        self.output
    }

    fn add_to(&self, arguments: &mut Arguments<'_>) -> Result<(), String> {
        if self.need.is_some() || self.need_text.is_some() {
            texts::add_need(self.need.as_deref(), self.need_text.as_deref(), arguments)?;
        }
        for path in &self.from {
            arguments.file_option("from", path)?;
        }
        if let Some(layout) = &self.keep {
            arguments.file_option("keep", layout)?;
        }
        arguments.option("iops", self.iops);
        arguments.option("vcpus", self.vcpus);
        arguments.option("percentile", self.percentile);
        let texts = [
            ("size", &self.size),
            ("throughput", &self.throughput),
            ("request", &self.request),
            ("reads", &self.reads),
            ("latency", &self.latency),
            ("edition", &self.edition),
            ("host", &self.host),
            ("architecture", &self.architecture),
            ("memory", &self.memory),
            ("region", &self.region),
            ("currency", &self.currency),
            ("budget", &self.budget),
            ("headroom", &self.headroom),
            ("growth", &self.growth),
        ];
        texts.into_iter().for_each(|(name, value)| arguments.option(name, value.as_ref()));
        arguments.options("compare", &self.compare);
        arguments.options("family", &self.family);
        arguments.flag("verify", self.verify);
        arguments.flag("verbose", self.verbose);
        Ok(())
    }
}
