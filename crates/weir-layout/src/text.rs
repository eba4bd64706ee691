//! Layouts as text: the keys of tables, written in TOML.

use crate::backend::BackendKeys;
use crate::clients::ClientsKeys;
use crate::file::{
    AlikeKeys, BurstKeys, CacheKeys, Columns, FileKeys, HostKeys, HostLimitKeys, LatencyKeys,
    LimitKeys, PlaceKey, QuantileKeys, StripeKeys, VolumeKeys,
};
use toml::Value;
use weir_units::{Bytes, BytesPerSec, CacheMode, Iops, Share, Span};

/// A layout that is written table by table.
#[derive(Debug, Clone, Default)]
pub struct LayoutText {
    text: String,
}

impl LayoutText {
    /// Begins a layout of an edition.
    #[must_use]
    pub fn new(edition: &str) -> Self {
        Self { text: Pairs::default().add("edition", Some(edition.to_owned())).lines() }
    }

    /// Writes the region of the prices. It comes before all tables.
    #[must_use]
    pub fn in_region(mut self, region: Option<&str>) -> Self {
        self.text += &Pairs::default().add("region", region.map(str::to_owned)).lines();
        self
    }

    /// Continues a layout.
    #[must_use]
    pub fn after(text: &str) -> Self {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        Self { text: format!("{text}{end}") }
    }

    /// Writes the host.
    pub fn host(&mut self, keys: &HostKeys) {
        self.table("[host]", &host(keys));
    }

    /// Writes a volume.
    pub fn volume(&mut self, keys: &VolumeKeys) {
        self.table("[[volume]]", &volume(keys));
    }

    /// Writes a stripe, with its volumes in one line.
    pub fn stripe(&mut self, keys: &StripeKeys) {
        let StripeKeys { name, host, unit, volumes, clients: own_clients } = keys;
        let volumes = match volumes {
            Columns::Alike(alike) => alike_volumes(alike).inline(),
            Columns::Named(names) => {
                Value::Array(names.iter().cloned().map(Value::String).collect()).to_string()
            }
        };
        let pairs = Pairs::default()
            .add("name", Some(name.clone()))
            .add("host", host.clone())
            .size("unit", Some(*unit))
            .raw("volumes", volumes)
            .within("clients", own_clients.as_ref().map(clients));
        self.table("[[stripe]]", &pairs);
    }

    /// Writes a database file.
    pub fn file(&mut self, keys: &FileKeys) {
        let FileKeys { name, host, database, role, size, used, growth, max_size, on } = keys;
        let pairs = Pairs::default()
            .add("name", Some(name.clone()))
            .add("host", host.clone())
            .add("database", database.clone())
            .add("role", Some(role.name().to_owned()))
            .size("size", Some(*size))
            .size("used", *used)
            .size("growth", *growth)
            .size("max_size", *max_size)
            .add("on", on.clone());
        self.table("[[file]]", &pairs);
    }

    /// Returns the text.
    #[must_use]
    pub fn finish(&self) -> String {
        self.text.clone()
    }

    fn table(&mut self, head: &str, pairs: &Pairs) {
        self.text += &format!("\n{head}\n{}", pairs.lines());
    }
}

/// Keys with their values in TOML, in order. Absent values are left out.
#[derive(Debug, Default)]
struct Pairs(Vec<(&'static str, String)>);

impl Pairs {
    fn raw(mut self, key: &'static str, value: String) -> Self {
        self.0.push((key, value));
        self
    }

    fn add(self, key: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.raw(key, value.into().to_string()),
            None => self,
        }
    }

    fn flag(self, key: &'static str, is_set: bool) -> Self {
        self.add(key, is_set.then_some(true))
    }

    fn size(self, key: &'static str, size: Option<Bytes>) -> Self {
        self.add(key, size.map(|size| size.exact().to_string()))
    }

    fn iops(self, key: &'static str, iops: Option<Iops>) -> Self {
        match iops.map(|iops| (i64::try_from(iops.get()), iops)) {
            // TOML's integers are signed.
            Some((Err(_), iops)) => self.add(key, Some(iops.to_string())),
            own => self.add(key, own.and_then(|(number, _)| number.ok())),
        }
    }

    fn rate(self, key: &'static str, rate: Option<BytesPerSec>) -> Self {
        self.add(key, rate.map(|rate| rate.to_string()))
    }

    fn share(self, key: &'static str, share: Option<Share>) -> Self {
        self.add(key, share.map(|share| share.to_string()))
    }

    fn span(self, key: &'static str, span: Option<Span>) -> Self {
        self.add(key, span.map(|span| span.to_string()))
    }

    fn within(self, key: &'static str, pairs: Option<Self>) -> Self {
        match pairs {
            Some(pairs) => self.raw(key, pairs.inline()),
            None => self,
        }
    }

    fn lines(&self) -> String {
        self.0.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
    }

    fn inline(&self) -> String {
        let pairs: Vec<String> =
            self.0.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
    }
}

fn host(keys: &HostKeys) -> Pairs {
    let HostKeys {
        name,
        size,
        limits,
        unlimited,
        cache,
        managed_instance,
        vcores,
        storage,
        tiers,
        iops,
        licence_owned,
        filesystem,
        credits,
    } = keys;
    Pairs::default()
        .add("name", name.clone())
        .add("size", size.clone())
        .within("limits", limits.as_ref().map(host_limits))
        .flag("unlimited", *unlimited)
        .within("cache", cache.as_ref().map(host_cache))
        .add("managed_instance", managed_instance.map(|own| own.name().to_owned()))
        .add("vcores", vcores.map(i64::from))
        .size("storage", *storage)
        .add("tiers", tiers.clone())
        .iops("iops", *iops)
        .flag("licence_owned", *licence_owned)
        .add("filesystem", filesystem.map(|own| own.name().to_owned()))
        .share("credits", *credits)
}

fn host_limits(keys: &HostLimitKeys) -> Pairs {
    let HostLimitKeys { uncached, cached } = keys;
    Pairs::default()
        .within("uncached", uncached.as_ref().map(limits))
        .within("cached", cached.as_ref().map(limits))
}

fn limits(keys: &LimitKeys) -> Pairs {
    let LimitKeys { iops, throughput, burst } = keys;
    let burst = burst.as_ref().map(|BurstKeys { iops, throughput, duration }| {
        Pairs::default()
            .iops("iops", *iops)
            .rate("throughput", *throughput)
            .span("duration", Some(*duration))
    });
    Pairs::default().iops("iops", *iops).rate("throughput", *throughput).within("burst", burst)
}

fn host_cache(keys: &CacheKeys) -> Pairs {
    let CacheKeys { size, latency: own, dirty_limit, writeback_after } = keys;
    latency(Pairs::default().size("size", *size), own.as_ref())
        .size("dirty_limit", *dirty_limit)
        .span("writeback_after", *writeback_after)
}

fn latency(pairs: Pairs, keys: Option<&LatencyKeys>) -> Pairs {
    match keys {
        None => pairs,
        Some(LatencyKeys::Fixed(span)) => pairs.span("latency", Some(*span)),
        Some(LatencyKeys::Quantiles(own)) => {
            let QuantileKeys { p0, p50, p90, p99, p999, p100, transfer } = own;
            let quantiles = Pairs::default()
                .span("p0", Some(*p0))
                .span("p50", Some(*p50))
                .span("p90", *p90)
                .span("p99", *p99)
                .span("p999", *p999)
                .span("p100", Some(*p100))
                .rate("transfer", *transfer);
            pairs.within("latency", Some(quantiles))
        }
    }
}

fn backend(keys: &BackendKeys) -> Pairs {
    let BackendKeys { nbd, file, connections, timeout } = keys;
    Pairs::default()
        .add("nbd", nbd.clone())
        .add("file", file.as_ref().map(|path| path.to_string_lossy().into_owned()))
        .add("connections", connections.map(i64::from))
        .span("timeout", *timeout)
}

fn clients(keys: &ClientsKeys) -> Pairs {
    let ClientsKeys { addresses, certificates } = keys;
    Pairs::default().add("addresses", addresses.clone()).add("certificates", certificates.clone())
}

fn volume(keys: &VolumeKeys) -> Pairs {
    // `log` follows from the role of a file.
    let VolumeKeys {
        name,
        host,
        tier,
        size,
        family,
        iops,
        throughput,
        limits: own_limits,
        unlimited,
        cache,
        place,
        on_demand_burst,
        performance_plus,
        performance_tier,
        latency: own_latency,
        credits,
        lun,
        backend: own_backend,
        checksums,
        clients: own_clients,
        log: _,
    } = keys;
    let place = place.map(|place| match place {
        PlaceKey::Remote => "remote",
        PlaceKey::Local => "local",
    });
    let pairs = Pairs::default()
        .add("name", name.clone())
        .add("host", host.clone())
        .add("tier", tier.clone())
        .add("performance_tier", performance_tier.clone())
        .flag("on_demand_burst", *on_demand_burst)
        .flag("performance_plus", *performance_plus)
        .add("family", family.clone())
        .size("size", *size)
        .iops("iops", *iops)
        .rate("throughput", *throughput)
        .within("limits", own_limits.as_ref().map(limits))
        .flag("unlimited", *unlimited)
        .add("place", place)
        .add("cache", (*cache != CacheMode::None).then(|| cache.name()));
    latency(pairs, own_latency.as_ref())
        .share("credits", *credits)
        .add("lun", *lun)
        .within("backend", own_backend.as_ref().map(backend))
        .flag("checksums", *checksums)
        .within("clients", own_clients.as_ref().map(clients))
}

fn alike_volumes(keys: &AlikeKeys) -> Pairs {
    let AlikeKeys { count, luns, each } = keys;
    let mut pairs = Pairs::default().add("count", Some(i64::from(*count)));
    pairs.0.extend(volume(each).0);
    pairs.add("luns", luns.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;
    use crate::file::{LayoutFile, OneOrMany};
    use weir_catalog::Catalog;

    /// Writes a parsed layout again, with its edition and one host.
    fn rewritten(file: &LayoutFile) -> String {
        let mut text = LayoutText::new(file.edition.as_deref().expect("an edition"));
        let OneOrMany(hosts) = file.host.as_ref().expect("a host");
        text.host(&hosts[0]);
        file.volume.iter().for_each(|keys| text.volume(keys));
        file.stripe.iter().for_each(|keys| text.stripe(keys));
        file.file.iter().for_each(|keys| text.file(keys));
        text.finish()
    }

    #[track_caller]
    fn check(text: &str) {
        let file: LayoutFile = toml::from_str(text).expect("a layout");
        assert_eq!(rewritten(&file), text);
        Layout::parse("written", text, &Catalog::builtin()).expect("a valid layout");
    }

    #[test]
    fn every_key_is_written_as_it_is_parsed() {
        check(
            r#"edition = "azure-now"

[host]
name = "sql"
size = "Standard_D8s_v3"
limits = { uncached = { iops = 9000, throughput = "200 MB/s" }, cached = { iops = 16000, throughput = "128 MB/s", burst = { iops = 20000, throughput = "300 MB/s", duration = "30 min" } } }
cache = { size = "200 GiB", latency = "200 us", dirty_limit = "32 MiB", writeback_after = "2 s" }
licence_owned = true
filesystem = "ntfs"
credits = "12.5 %"

[[volume]]
name = "own"
host = "sql"
size = "1 TiB"
limits = { iops = 500 }
cache = "read-only"
latency = { p0 = "1 ms", p50 = "2 ms", p90 = "3 ms", p99 = "4 ms", p999 = "5 ms", p100 = "6 ms", transfer = "100 MiB/s" }
lun = 9

[[volume]]
name = "raised"
tier = "P10"
performance_tier = "P20"

[[volume]]
name = "spent"
tier = "P10"
credits = "0 %"

[[volume]]
name = "local"
size = "100 GiB"
unlimited = true
place = "local"
clients = { addresses = ["10.0.0.0/8", "::1"], certificates = ["db1.example"] }
"#,
        );
    }

    #[test]
    fn stripes_have_their_volumes_in_one_line() {
        check(
            r#"edition = "azure-premium-2015"

[host]
size = "DS14"

[[volume]]
name = "a"
tier = "P30"

[[volume]]
name = "b"
tier = "P30"

[[stripe]]
name = "named"
unit = "64 KiB"
volumes = ["a", "b"]

[[stripe]]
name = "pool"
unit = "256 KiB"
volumes = { count = 2, tier = "P30", cache = "read-only", luns = [4, 5] }

[[file]]
name = "data"
database = "sales"
role = "data"
size = "10 GiB"
used = "4 GiB"
growth = "1 GiB"
max_size = "20 GiB"
on = "pool"
"#,
        );
    }

    #[test]
    fn instances_have_no_machine() {
        check(
            r#"edition = "azure-mi-now"

[host]
managed_instance = "next-gen-gp"
vcores = 8
storage = "1 TiB"
iops = 5000

[[file]]
name = "data"
role = "data"
size = "10 GiB"
"#,
        );
    }

    #[test]
    fn texts_are_quoted() {
        let keys = VolumeKeys { name: Some("a\"b\\c\n".to_owned()), ..VolumeKeys::default() };
        let mut text = LayoutText::after("edition = \"x\"");
        text.volume(&keys);
        let file: LayoutFile = toml::from_str(&text.finish()).expect("valid TOML");
        assert_eq!(file.volume[0].name, keys.name);
        assert_eq!(file.edition.as_deref(), Some("x"));
    }

    #[test]
    fn rates_beyond_toml_integers_are_texts() {
        let keys = VolumeKeys { iops: Iops::new(u64::MAX), ..VolumeKeys::default() };
        let mut text = LayoutText::default();
        text.volume(&keys);
        let file: LayoutFile = toml::from_str(&text.finish()).expect("valid TOML");
        assert_eq!(file.volume[0].iops, keys.iops);
    }
}
