//! Adds the metrics of finished requests to the page `/metrics`: outcomes, durations and reasons.

use super::metrics::{Exposition, FamilyKind, MetricsFormat, label_set};
use foxy_proxy::core::metrics::exemplar::Exemplar;
use foxy_proxy::core::metrics::request_metrics::CLASSES;
use foxy_proxy::core::metrics::timing::Durations;
use foxy_proxy::server::{Gauges, OutcomeMetrics};
use std::collections::BTreeMap;

type LabelPair<'a> = (&'a str, &'a str);

impl Exposition {
    /// Adds the finished requests of the proxy, the reasons for errors and for not storing, and the
    /// times until origins answer.
    pub fn requests(&mut self, proxy: &Gauges) {
        let outcomes = proxy.outcomes();
        self.responses(&outcomes);
        let name = "foxy_proxy_request_duration_seconds";
        let help = "Time from the first byte of a request to the end of its answer, by outcome.";
        if !outcomes.is_empty() {
            self.head(name, FamilyKind::Histogram, help);
        }
        for metrics in &outcomes {
            let labels = [("outcome", metrics.outcome.name())];
            self.histogram(name, &labels, &metrics.durations, &metrics.exemplars);
        }
        let name = "foxy_origin_first_byte_seconds";
        let help = "Time from the start of a request to an origin, with its connection, to the \
                    head of the response.";
        self.head(name, FamilyKind::Histogram, help);
        self.histogram(name, &[], &proxy.first_bytes(), &[]);
        let help = "Error answers of foxy itself, by reason; docs/errors.md explains each.";
        self.reasons("foxy_proxy_errors_total", help, &proxy.errors());
        let help = "Fetched responses that foxy did not store, by reason.";
        self.reasons("foxy_proxy_not_stored_total", help, &proxy.not_stored());
    }

    fn responses(&mut self, outcomes: &[OutcomeMetrics]) {
        let cells = outcomes.iter().flat_map(|metrics| {
            let classes = CLASSES.iter().zip(metrics.classes).filter(|(_, count)| *count > 0);
            classes.map(|(class, count)| {
                ([("outcome", metrics.outcome.name()), ("class", *class)], count)
            })
        });
        let cells: Vec<_> = cells.collect();
        let help = "Finished requests by outcome and status class.";
        let samples = cells.iter().map(|(labels, count)| (&labels[..], *count));
        self.family("foxy_proxy_responses_total", FamilyKind::Counter, help, samples);
        let names: Vec<_> =
            outcomes.iter().map(|metrics| [("outcome", metrics.outcome.name())]).collect();
        let help = "Body bytes that clients received, by outcome.";
        let samples =
            names.iter().zip(outcomes).map(|(labels, metrics)| (&labels[..], metrics.bytes));
        self.family("foxy_proxy_body_bytes_total", FamilyKind::Counter, help, samples);
    }

    fn reasons(&mut self, name: &str, help: &str, counts: &BTreeMap<&'static str, u64>) {
        let labels: Vec<_> = counts.keys().map(|reason| [("reason", *reason)]).collect();
        let samples =
            labels.iter().zip(counts.values()).map(|(labels, count)| (&labels[..], count));
        self.family(name, FamilyKind::Counter, help, samples);
    }

    /// Adds the samples of a histogram. `exemplars` has an entry for each bucket, or is empty.
    fn histogram(
        &mut self,
        name: &str,
        labels: &[LabelPair<'_>],
        durations: &Durations,
        exemplars: &[Option<Exemplar>],
    ) {
        let with_exemplars = self.format == MetricsFormat::OpenMetrics;
        for (number, (end, count)) in durations.up_to().into_iter().enumerate() {
            let end = if end.is_finite() { end.to_string() } else { "+Inf".to_owned() };
            let labels = label_set(&[labels, &[("le", end.as_str())]].concat());
            let exemplar = exemplars.get(number).copied().flatten().filter(|_| with_exemplars);
            let exemplar = exemplar.as_ref().map(exemplar_text).unwrap_or_default();
            self.line(format_args!("{name}_bucket{labels} {count}{exemplar}"));
        }
        let labels = label_set(labels);
        self.line(format_args!("{name}_sum{labels} {}", durations.total().as_secs_f64()));
        self.line(format_args!("{name}_count{labels} {}", durations.count()));
    }
}

fn exemplar_text(exemplar: &Exemplar) -> String {
    let Exemplar { trace, micros, at } = exemplar;
    let labels = label_set(&[("trace_id", trace.as_str())]);
    format!(" # {labels} {} {}.{:03}", *micros as f64 / 1e6, at.seconds(), at.0 % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::WallTime;
    use foxy_proxy::core::metrics::exemplar::TraceId;
    use foxy_proxy::core::metrics::timing::{BUCKETS, Timing};
    use std::time::Duration;

    fn lines(format: MetricsFormat) -> Vec<String> {
        let timing = Timing::default();
        timing.add(Duration::from_micros(20));
        timing.add(Duration::from_secs(100));
        let field = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = TraceId::of(field).expect("an id");
        let mut exemplars = [None; BUCKETS];
        exemplars[1] = Some(Exemplar { trace, micros: 20, at: WallTime(1_286_536_308_079) });
        let mut exposition = Exposition::new(format);
        let durations = Durations::sum(std::iter::once(&timing));
        exposition.histogram("x", &[("a", "b")], &durations, &exemplars);
        exposition.finish().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_histogram_has_growing_buckets_a_sum_and_a_count() {
        let lines = lines(MetricsFormat::Prometheus);
        assert_eq!(lines[0], "x_bucket{a=\"b\",le=\"0.000016\"} 0");
        assert_eq!(lines[1], "x_bucket{a=\"b\",le=\"0.000032\"} 1");
        let last =
            ["x_bucket{a=\"b\",le=\"+Inf\"} 2", "x_sum{a=\"b\"} 100.00002", "x_count{a=\"b\"} 2"];
        assert_eq!(lines[BUCKETS - 1..], last);
    }

    #[test]
    fn only_openmetrics_has_exemplars() {
        let expected = "x_bucket{a=\"b\",le=\"0.000032\"} 1 # {trace_id=\"\
                        4bf92f3577b34da6a3ce929d0e0e4736\"} 0.00002 1286536308.079";
        assert_eq!(lines(MetricsFormat::OpenMetrics)[1], expected);
    }
}
