//! Builds the page `/metrics`: counters and gauges in the text format of Prometheus (version 0.0.4)
//! or of OpenMetrics (version 1.0.0). `request_metrics` adds histograms.

use crate::serve::access_log::queue::LogQueue;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::server::Gauges;
use foxy_proxy::upstream::ServerStatus;
use foxy_store::statistics::{Measure, MeasureKind};
use std::fmt::{Display, Write};

/// The text formats of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsFormat {
    #[default]
    Prometheus,
    /// Has exemplars: examples of requests in the buckets of a histogram.
    OpenMetrics,
}

impl MetricsFormat {
    /// Chooses the format by the field `Accept` of the scraper's request.
    pub fn accepted(accept: Option<&[u8]>) -> Self {
        let accept = String::from_utf8_lossy(accept.unwrap_or_default()).to_ascii_lowercase();
        let is_wanted = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            let is_named = parts.next() == Some("application/openmetrics-text");
            is_named && !parts.any(|parameter| matches!(parameter, "q=0" | "q=0.0"))
        };
        if accept.split(',').any(is_wanted) { Self::OpenMetrics } else { Self::Prometheus }
    }

    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// A value that starts at zero and only grows until the process ends. The name of such a metric
    /// ends in `_total`.
    Counter,
    Gauge,
    /// Numbers of events with at most a certain value, and the sum of all values.
    Histogram,
}

/// A metrics page under construction. A family consists of all samples with the same metric name.
#[derive(Debug, Default)]
pub struct Exposition {
    pub(super) format: MetricsFormat,
    text: String,
}

impl Exposition {
    pub fn new(format: MetricsFormat) -> Self {
        Self { format, text: String::new() }
    }

    /// Adds a family that has one sample and no labels.
    pub fn single(&mut self, name: &str, kind: FamilyKind, help: &str, value: impl Display) {
        self.family(name, kind, help, [(&[] as &[(&str, &str)], value)]);
    }

    /// Adds a family of samples. Each sample has labels and a value. A family without samples is
    /// left out.
    pub fn family<'a, V: Display>(
        &mut self,
        name: &str,
        kind: FamilyKind,
        help: &str,
        samples: impl IntoIterator<Item = (&'a [(&'a str, &'a str)], V)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        self.head(name, kind, help);
        for (labels, value) in samples {
            self.line(format_args!("{name}{} {value}", label_set(labels)));
        }
    }

    /// Begins a metric family, which has all samples of one metric. The caller must add the samples
    /// next.
    pub(super) fn head(&mut self, name: &str, kind: FamilyKind, help: &str) {
        let kind = match kind {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let (name, help) = match self.format {
            MetricsFormat::Prometheus => (name, help),
            MetricsFormat::OpenMetrics => {
                (name.strip_suffix("_total").unwrap_or(name), help.replace('"', "\\\""))
            }
        };
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    pub fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    pub(super) fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("a String takes all");
    }

    /// Adds the metrics of the proxy. Each counter is the sum over all workers.
    pub fn proxy(&mut self, proxy: &Gauges) {
        for counter in Counter::ALL {
            let name = format!("foxy_proxy_{}_total", counter.name());
            self.single(&name, FamilyKind::Counter, counter.help().trim(), proxy.count(*counter));
        }
        let (bytes, entries) = proxy.memory();
        let help = "Bytes in the memory cache: responses, and parts of large responses.";
        self.single("foxy_proxy_memory_bytes", FamilyKind::Gauge, help, bytes);
        let help = "Entries of the memory cache: responses, and parts of large responses.";
        self.single("foxy_proxy_memory_entries", FamilyKind::Gauge, help, entries);
        let help = "Client connections open now.";
        self.single("foxy_proxy_connections_open", FamilyKind::Gauge, help, proxy.connections());
    }

    /// Adds the metrics of all stores, with a sample for each store. Each entry of `snapshots` has
    /// a store's folder and its values. All entries must list the same metrics in the same order.
    pub fn stores(&mut self, snapshots: &[(String, Vec<Measure>)]) {
        let Some((_, first)) = snapshots.first() else { return };
        let labels: Vec<_> =
            snapshots.iter().map(|(store, _)| [("store", store.as_str())]).collect();
        for (index, measure) in first.iter().enumerate() {
            let (name, kind) = match measure.kind {
                MeasureKind::Counter => {
                    (format!("foxy_store_{}_total", measure.name), FamilyKind::Counter)
                }
                MeasureKind::Gauge => (format!("foxy_store_{}", measure.name), FamilyKind::Gauge),
            };
            let samples = labels
                .iter()
                .zip(snapshots)
                .map(|(labels, (_, all))| (&labels[..], all[index].value));
            self.family(&name, kind, measure.help, samples);
        }
    }

    /// Adds a gauge for each store: 1 if the store is out of use, otherwise 0.
    pub fn out_of_use(&mut self, stores: &[(&str, bool)]) {
        let help = "1 if the store was taken out of use because its disk failed again and again; \
                    the others take its URLs.";
        let labels: Vec<_> = stores.iter().map(|(store, _)| [("store", *store)]).collect();
        let samples =
            labels.iter().zip(stores).map(|(labels, (_, out))| (&labels[..], u8::from(*out)));
        self.family("foxy_store_out_of_use", FamilyKind::Gauge, help, samples);
    }

    /// Adds a counter for each of the operator's rules: the requests to which the rule applied.
    pub fn rules(&mut self, counts: &[(String, u64)]) {
        let help = "Requests to which the rule applied, since the last reload.";
        let labels: Vec<_> = counts.iter().map(|(name, _)| [("rule", name.as_str())]).collect();
        let samples = labels.iter().zip(counts).map(|(labels, (_, count))| (&labels[..], *count));
        self.family("foxy_rule_requests_total", FamilyKind::Counter, help, samples);
    }

    /// Adds the metrics of each server of each origin, for a reverse proxy.
    pub fn servers(&mut self, all: &[ServerStatus]) {
        let labels: Vec<_> =
            all.iter().map(|it| [("origin", it.origin.as_str()), ("server", &it.server)]).collect();
        let mut family = |name: &str, kind, help: &str, value: fn(&ServerStatus) -> u64| {
            let samples = labels.iter().zip(all).map(|(labels, it)| (&labels[..], value(it)));
            self.family(name, kind, help, samples);
        };
        let (counter, gauge) = (FamilyKind::Counter, FamilyKind::Gauge);
        let help = "Requests that foxy sent to the server, probes not included.";
        family("foxy_server_requests_total", counter, help, |it| it.requests);
        let help = "Requests that failed: no connection, no valid response, or status 500, 502, \
                    503 or 504.";
        family("foxy_server_errors_total", counter, help, |it| it.errors);
        let help = "Requests in progress.";
        family("foxy_server_requests_open", gauge, help, |it| it.in_flight);
        let help = "1 if the server gets no requests because requests or probes failed.";
        family("foxy_server_resting", gauge, help, |it| it.rests.into());
    }

    pub fn access_log(&mut self, queue: &LogQueue) {
        let name = "foxy_access_log_lines_dropped_total";
        let help = "Lines of the access log dropped because writing them was too slow.";
        self.single(name, FamilyKind::Counter, help, queue.dropped());
        let name = "foxy_access_log_lines_unwritten_total";
        let help = "Lines of the access log lost because its file could not be written.";
        self.single(name, FamilyKind::Counter, help, queue.unwritten());
    }

    pub fn transaction_log(&mut self, queue: &LogQueue) {
        let name = "foxy_transaction_log_entries_lost_total";
        let help = "Entries of the log of transactions lost because a buffer was full or the file \
                    could not be written.";
        self.single(name, FamilyKind::Counter, help, queue.dropped() + queue.unwritten());
    }

    pub fn build(&mut self) {
        let labels = [("version", env!("CARGO_PKG_VERSION"))];
        let help = "Always 1; the label has the version of foxy.";
        self.family("foxy_build_info", FamilyKind::Gauge, help, [(&labels[..], 1)]);
    }
}

pub(super) fn label_set(labels: &[(&str, &str)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escape =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<_> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_openmetrics_only_if_it_accepts_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2";
        for (accept, format) in [
            (Some(prometheus), MetricsFormat::OpenMetrics),
            (Some("text/plain, Application/OpenMetrics-Text"), MetricsFormat::OpenMetrics),
            (Some("application/openmetrics-text; q=0, */*"), MetricsFormat::Prometheus),
            (Some("*/*"), MetricsFormat::Prometheus),
            (None, MetricsFormat::Prometheus),
        ] {
            assert_eq!(MetricsFormat::accepted(accept.map(str::as_bytes)), format, "{accept:?}");
        }
    }

    #[test]
    fn openmetrics_names_a_counter_without_its_suffix_and_ends_with_eof() {
        let mut exposition = Exposition::new(MetricsFormat::OpenMetrics);
        exposition.single("foxy_x_total", FamilyKind::Counter, "Says \"x\".", 1);
        let expected =
            "# HELP foxy_x Says \\\"x\\\".\n# TYPE foxy_x counter\nfoxy_x_total 1\n# EOF\n";
        assert_eq!(exposition.finish(), expected);
    }

    #[test]
    fn families_carry_help_type_and_escaped_labels() {
        let mut exposition = Exposition::default();
        exposition.single("foxy_up", FamilyKind::Gauge, "Always\none.", 1);
        let labels: [(&str, &str); 1] = [("path", "a\"b\\c\nd")];
        exposition.family("foxy_x_total", FamilyKind::Counter, "Some.", [(&labels[..], 2.5)]);
        exposition.family(
            "foxy_none_total",
            FamilyKind::Counter,
            "None.",
            [] as [(&[(&str, &str)], u64); 0],
        );
        assert_eq!(
            exposition.finish(),
            "# HELP foxy_up Always\\none.\n# TYPE foxy_up gauge\nfoxy_up 1\n\
             # HELP foxy_x_total Some.\n# TYPE foxy_x_total \
             counter\nfoxy_x_total{path=\"a\\\"b\\\\c\\nd\"} 2.5\n"
        );
    }
}
