//! Turns the report of a LEAP run into run records (the lines of `--json`).

use super::differences::Class;
use super::differences::{PairedDifference, noise_floor_of};
use super::{LeapReport, PathReport};
use crate::leap::exchange::failure::PathFailure;
use crate::leap::exchange::kept::{Carriage, Connections};
use crate::leap::front::FrontRefusal;
use crate::leap::verdict::Unjudged;
use crate::leap::verdict::Verdict;
use crate::wire::tls::HandshakeFailure;
use foxy_report::{Measurable, Measure, Record, RequestClass};

/// The measure with the number of idle connections on which the server sent bytes without a
/// request.
const SURPLUS: &str = "kept_connections_with_surplus_bytes";

impl LeapReport {
    /// Returns the report and the given differences as run records.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn records(&self, differences: &[PairedDifference]) -> Vec<Record> {
        let mut records: Vec<Record> = self.paths.iter().flat_map(of_path).collect();
        if self.connections == Connections::Kept {
            records.extend(self.paths.iter().flat_map(of_connections));
        }
        for pair in differences {
            let (first, second) = (&self.paths[pair.paths.0].name, &self.paths[pair.paths.1].name);
            let of = of_class(pair.class);
            for (name, found) in [
                ("latency_difference_p50_us", pair.median),
                ("latency_difference_mean_us", pair.mean),
            ] {
                let measure =
                    Measure::once(&format!("{name}_to_{second}{of}"), first, found.value, "us");
                records.push(Record::Measure(Measure {
                    low: found.low,
                    high: found.high,
                    ..measure
                }));
            }
            if pair.class.is_some() {
                let (name, count) = (format!("requests_beside_{second}{of}"), pair.requests as f64);
                records.push(Record::Measure(Measure::once(&name, first, count, "requests")));
            }
        }
        let whole = [
            ("requests", self.requests as f64, "requests"),
            ("refused", self.refused as f64, "requests"),
            ("asked_again", self.asked_again as f64, "requests"),
            ("generator_busiest_thread", self.busy(), "share"),
            ("generator_ceiling", self.ceiling(), "1/s"),
        ];
        for class in std::iter::once(None).chain(Class::ALL.map(Some)) {
            let Some(floor) = noise_floor_of(class, differences) else { continue };
            let of = of_class(class);
            for (name, value) in
                [("noise_floor_us", floor.median), ("noise_floor_mean_us", floor.mean)]
            {
                records.push(Record::Measure(Measure::once(
                    &format!("{name}{of}"),
                    "leap",
                    value,
                    "us",
                )));
            }
        }
        let late = (self.late.count() > 0)
            .then(|| ("generator_late_p99_us", self.late.at(0.99) as f64, "us"));
        if let Some(clients) = &self.clients {
            let counts = [
                ("client_connections", clients.connections),
                ("clients_gone", clients.gone),
                ("clients_broken", clients.broken),
                ("held_by_clients", self.held),
            ];
            let counts = counts.map(|(name, count)| (name.to_owned(), count));
            let refused = FrontRefusal::ALL
                .map(|reason| (format!("refused_{}", reason.name()), clients.refused(reason)));
            let entered = HandshakeFailure::ALL.map(|reason| {
                (format!("not_entered_{}", reason.name()), clients.not_entered[reason as usize])
            });
            for (name, count) in counts.into_iter().chain(refused).chain(entered) {
                records.push(Record::Measure(Measure::once(&name, "leap", count as f64, "count")));
            }
        }
        for (name, value, unit) in whole.into_iter().chain(late) {
            records.push(Record::Measure(Measure::once(name, "leap", value, unit)));
        }
        records
    }
}

/// Returns the names of all measures that [`LeapReport::records`] can produce. `clients` says
/// whether the run serves clients.
pub fn measurable(paths: &[&str], clients: bool, connections: Connections) -> Vec<Measurable> {
    let mut found: Vec<Measurable> = paths
        .iter()
        .enumerate()
        .map(|(place, path)| of_one(path, &paths[place + 1..], connections))
        .collect();
    let whole = [
        "requests",
        "refused",
        "asked_again",
        "generator_busiest_thread",
        "generator_ceiling",
        "generator_late_p99_us",
    ];
    let floors = [
        "noise_floor_us",
        "noise_floor_mean_us",
        "noise_floor_us_of_{class}",
        "noise_floor_mean_us_of_{class}",
    ];
    let leap =
        Measurable::of("leap", &whole).and(&floors).choosing("class", Class::ALL.map(Class::name));
    found.push(if clients {
        let counts = ["client_connections", "clients_gone", "clients_broken", "held_by_clients"];
        leap.and(&counts)
            .and(&["refused_{refusal}", "not_entered_{reason}"])
            .choosing("refusal", FrontRefusal::ALL.map(FrontRefusal::name))
            .choosing("reason", HandshakeFailure::ALL.map(HandshakeFailure::name))
    } else {
        leap
    });
    found
}

fn of_one(path: &str, after: &[&str], connections: Connections) -> Measurable {
    let plain = [
        "answers",
        "errors",
        "latency_mean_us",
        "latency_mean_with_errors_us",
        "latency_{quantile}_us",
        "connect_p50_us",
        "first_byte_p50_us",
        "transfer_p50_us",
        "hit_ratio",
        "byte_hit_ratio",
        "verdict_{verdict}",
        "unjudged",
        "unjudged_{reason}",
        "errors_{cause}",
    ];
    let of_pairs = [
        "latency_difference_{of}_us_to_{path}",
        "latency_difference_{of}_us_to_{path}_of_{class}",
        "requests_beside_{path}_of_{class}",
    ];
    let all = Measurable::of(path, &plain)
        .and(&of_pairs)
        .choosing("quantile", ["p50", "p90", "p99"])
        .choosing("verdict", Verdict::ALL.map(|verdict| verdict.name().to_ascii_lowercase()))
        .choosing("reason", Unjudged::ALL.map(Unjudged::name))
        .choosing("cause", PathFailure::ALL.map(PathFailure::name))
        .choosing("of", ["p50", "mean"])
        .choosing("path", after.iter().copied())
        .choosing("class", Class::ALL.map(Class::name));
    if connections == Connections::New {
        return all;
    }
    all.and(&["{connections}"])
        .choosing("connections", Carriage::ALL.map(Carriage::name).into_iter().chain([SURPLUS]))
}

fn of_class(class: Option<Class>) -> String {
    class.map(|class| format!("_of_{}", class.name())).unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn of_connections(path: &PathReport) -> impl Iterator<Item = Record> + '_ {
    let surplus = (SURPLUS, path.late_surplus, "connections");
    let carriages = Carriage::ALL
        .map(|carriage| (carriage.name(), path.carriages[carriage as usize], "requests"));
    carriages.into_iter().chain([surplus]).map(|(name, count, unit)| {
        Record::Measure(Measure::once(name, &path.name, count as f64, unit))
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn of_path(path: &PathReport) -> Vec<Record> {
    let mut values = vec![
        ("answers".to_owned(), path.answers as f64, "requests"),
        ("errors".to_owned(), path.failed() as f64, "requests"),
        ("latency_mean_us".to_owned(), path.latencies.mean(), "us"),
        ("latency_mean_with_errors_us".to_owned(), path.with_errors.mean(), "us"),
    ];
    for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        values.push((format!("latency_{name}_us"), path.latencies.at(quantile) as f64, "us"));
    }
    values.push(("connect_p50_us".into(), path.connect_median() as f64, "us"));
    for (name, latencies) in [("first_byte", &path.first_byte), ("transfer", &path.transfer)] {
        values.push((format!("{name}_p50_us"), latencies.at(0.5) as f64, "us"));
    }
    if let Some((hits, bytes)) = path.hit_ratios() {
        values.push(("hit_ratio".into(), hits, "share"));
        values.push(("byte_hit_ratio".into(), bytes, "share"));
    }
    for verdict in Verdict::ALL {
        let name = format!("verdict_{}", verdict.name().to_ascii_lowercase());
        values.push((name, path.count(verdict) as f64, "answers"));
    }
    values.push(("unjudged".into(), path.unjudged as f64, "answers"));
    for reason in Unjudged::ALL {
        let name = format!("unjudged_{}", reason.name());
        values.push((name, path.unjudged_by_reason[reason as usize] as f64, "answers"));
    }
    for failure in
        PathFailure::ALL.into_iter().filter(|&failure| path.failures[failure as usize] > 0)
    {
        values.push((
            format!("errors_{}", failure.name()),
            path.failures[failure as usize] as f64,
            "requests",
        ));
    }
    let measure = |(name, value, unit): (String, f64, &str)| {
        Record::Measure(Measure::once(&name, &path.name, value, unit))
    };
    let mut records: Vec<Record> = values.into_iter().map(measure).collect();
    let (name, subject) = ("latency".into(), path.name.clone());
    records.push(Record::Histogram {
        name,
        subject,
        quantiles: path.latencies.quantiles(),
        workload: None,
    });
    let bytes = [path.hits.1, path.known.1 - path.hits.1];
    for (class, bytes, latencies) in
        [("hits", bytes[0], &path.of_hits), ("misses", bytes[1], &path.of_misses)]
    {
        if latencies.count() > 0 {
            records
                .push(Record::RequestClass(RequestClass::new(class, &path.name, bytes, latencies)));
        }
    }
    records
}
