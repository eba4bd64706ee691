//! Arguments of the live page and the metrics.

use super::host_and_port;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct WebArgs {
    /// Show a live page in the browser at this address, for example 127.0.0.1:8080: rates against
    /// each limit, waits, credits and events. Metrics are at /metrics. docs/WEB.md describes it.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub(crate) web: Option<String>,
    /// Let the page change tiers, sizes, cache modes and credits, and crash hosts. Clients need a
    /// token, which is printed and written to a file beside the control socket.
    #[arg(long, requires = "web")]
    pub(crate) web_control: bool,
    /// Permit an address for --web and --metrics that other machines can reach. There is no login,
    /// and no encryption.
    #[arg(long)]
    pub(crate) web_remote: bool,
    /// Serve only metrics in OpenMetrics, for Prometheus, at this address under /metrics.
    /// docs/METRICS.md lists them.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub(crate) metrics: Option<String>,
}
