//! Code for commands that run a Collector, the common parent proxy of the proxies that LEAP
//! compares. The code creates the Collector's temporary file, and formats its counters as text.

use foxy_base::ByteSize;
use foxy_cli::temporary;
use foxy_lab::leap::collector::{CollectorReport, Failure, Refusal, Source, SpoolFile};
use foxy_lab::wire::tls::HandshakeFailure;
use foxy_report::Table;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub fn spool(folder: &Path, size: ByteSize) -> io::Result<SpoolFile> {
    Ok((Arc::new(temporary::file_without_name(folder)?), size.0))
}

pub fn table(report: &CollectorReport) -> Table {
    let mut table = Table::new(&["proxy", "requests", "origin fetches", "bytes"]);
    for proxy in report.proxies.iter().filter(|proxy| proxy.requests > 0) {
        let (requests, fetches) = (proxy.requests.to_string(), proxy.fetches.to_string());
        table.row(&[proxy.name.clone(), requests, fetches, ByteSize(proxy.bytes).to_string()]);
    }
    table
}

pub fn text(report: &CollectorReport) -> String {
    let mut text = table(report).render();
    let mut line = |what: std::fmt::Arguments<'_>| {
        let _a_string_takes_all = writeln!(text, "{what}");
    };
    line(format_args!("{}", collapse(report)));
    for what in prefetches(report) {
        line(format_args!("{what}"));
    }
    if report.differences.count() > 0 {
        let at = |quantile| ms(report.differences.at(quantile));
        line(format_args!(
            "|hit − miss|: median {:.3} ms, p90 {:.3} ms, p99 {:.3} ms over {} hits",
            at(0.5),
            at(0.9),
            at(0.99),
            report.differences.count()
        ));
    }
    for source in Source::ALL.into_iter().filter(|&source| report.sources[source as usize] > 0) {
        line(format_args!("answers {}: {}", source.name(), report.sources[source as usize]));
    }
    for refusal in Refusal::ALL.into_iter().filter(|&reason| report.refused(reason) > 0) {
        line(format_args!(
            "refused {}: {}: {}",
            refusal.name(),
            report.refused(refusal),
            refusal.description()
        ));
    }
    for reason in
        HandshakeFailure::ALL.into_iter().filter(|&reason| report.not_entered[reason as usize] > 0)
    {
        let count = report.not_entered[reason as usize];
        line(format_args!(
            "no TLS with a proxy, {}: {count}: {}",
            reason.name(),
            reason.description()
        ));
    }
    for failure in Failure::ALL.into_iter().filter(|&reason| report.failed(reason) > 0) {
        line(format_args!(
            "failed {}: {}: {}",
            failure.name(),
            report.failed(failure),
            failure.description()
        ));
    }
    let counts = [
        ("answers that a proxy did not receive completely", report.aborted),
        (
            "proxies that started an exchange and then read nothing for a second, so the exchange \
             did not wait for them",
            report.stalled,
        ),
        ("answers dropped for lack of space; raise --memory or --spool", report.evicted),
        ("exchanges in which the origin sent bytes after the end of its answer", report.surplus),
    ];
    for (what, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        line(format_args!("{what}: {count}"));
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of a run are far below 2^53")]
fn ms(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

pub fn prefetches(report: &CollectorReport) -> impl Iterator<Item = String> + '_ {
    report.proxies.iter().filter_map(|proxy| {
        let (name, count) = (&proxy.name, proxy.prefetches);
        let first = proxy.prefetched.as_ref()?;
        Some(format!(
            "{name} prefetches: {count} of its requests came from no client; the first was \
             {first}"
        ))
    })
}

pub fn collapse(report: &CollectorReport) -> String {
    let (requests, fetches) = (report.requests(), report.fetches);
    match report.collapse_factor() {
        Some(factor) => {
            format!("collapse factor {factor:.2}: {requests} requests, {fetches} origin fetches")
        }
        None => format!("collapse factor –: {requests} requests, no origin fetch"),
    }
}
