//! `/metrics`: the proxy's and the stores' tables of counters as Prometheus families, and the
//! process's own.

use super::exposition::{Exposition, FamilyKind};
use super::log_queue::LogQueue;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::server::Gauges;
use foxy_store::statistics::{Measure, MeasureKind};

/// The proxy's counters, summed over its workers, and its gauges.
pub fn proxy(exposition: &mut Exposition, proxy: &Gauges) {
    for counter in Counter::ALL {
        let name = format!("foxy_proxy_{}_total", counter.name());
        exposition.single(&name, FamilyKind::Counter, counter.help().trim(), proxy.count(*counter));
    }
    let (bytes, entries) = proxy.memory();
    let gauges = [
        (
            "foxy_proxy_memory_bytes",
            "Memory taken by responses and parts kept in memory, in bytes.",
            bytes,
        ),
        (
            "foxy_proxy_memory_entries",
            "Responses, and parts of large ones, kept in memory.",
            entries as u64,
        ),
        ("foxy_proxy_connections_open", "Client connections open now.", proxy.connections() as u64),
    ];
    for (name, help, value) in gauges {
        exposition.single(name, FamilyKind::Gauge, help, value);
    }
}

/// The stores' counters and gauges, one sample for each store. Every snapshot has the same measures
/// in the same order.
pub fn stores(exposition: &mut Exposition, snapshots: &[(String, Vec<Measure>)]) {
    let Some((_, first)) = snapshots.first() else { return };
    for (index, measure) in first.iter().enumerate() {
        let (name, kind) = match measure.kind {
            MeasureKind::Counter => {
                (format!("foxy_store_{}_total", measure.name), FamilyKind::Counter)
            }
            MeasureKind::Gauge => (format!("foxy_store_{}", measure.name), FamilyKind::Gauge),
        };
        let labels: Vec<_> =
            snapshots.iter().map(|(store, _)| [("store", store.as_str())]).collect();
        let samples =
            labels.iter().zip(snapshots).map(|(labels, (_, all))| (&labels[..], all[index].value));
        exposition.family(&name, kind, measure.help, samples);
    }
}

/// Which stores are out of use.
pub fn out_of_use(exposition: &mut Exposition, stores: &[(&str, bool)]) {
    let help = "1 if the store was taken out of use because its disk failed again and again; the others take its URLs.";
    let labels: Vec<_> = stores.iter().map(|(store, _)| [("store", *store)]).collect();
    let samples = labels.iter().zip(stores).map(|(labels, (_, out))| (&labels[..], u8::from(*out)));
    exposition.family("foxy_store_out_of_use", FamilyKind::Gauge, help, samples);
}

/// Lines of the access log that were lost.
pub fn access_log(exposition: &mut Exposition, queue: &LogQueue) {
    let name = "foxy_access_log_lines_dropped_total";
    let help = "Lines dropped because the writer did not keep up.";
    exposition.single(name, FamilyKind::Counter, help, queue.dropped());
    let name = "foxy_access_log_lines_unwritten_total";
    let help = "Lines lost because the file could not be written.";
    exposition.single(name, FamilyKind::Counter, help, queue.unwritten());
}

/// Which foxy this is.
pub fn build(exposition: &mut Exposition) {
    let labels = [("version", env!("CARGO_PKG_VERSION"))];
    let help = "Always 1; the label says which foxy this is.";
    exposition.family("foxy_build_info", FamilyKind::Gauge, help, [(&labels[..], 1)]);
}
