//! The bounded queue in front of the exporter's thread.

use super::counts::{OtlpCounts, OtlpDrop, OtlpSignal};
use super::spans;
use crate::terminal::Level;
use foxy_base::{WallTime, clock};
use foxy_log::ring::record;
use foxy_log::transaction::Transaction;
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Largest number of requests and messages that wait.
const MAX_WAITING: usize = 2048;

/// A request or a message that waits for its export.
#[derive(Debug)]
pub enum Telemetry {
    Request(Box<Transaction<'static>>),
    Message { at: WallTime, level: Level, text: String },
}

/// The sending end of the queue.
#[derive(Clone, Debug)]
pub struct OtlpQueue {
    sender: Sender<Telemetry>,
    counts: Arc<OtlpCounts>,
}

impl OtlpQueue {
    pub fn new(counts: Arc<OtlpCounts>) -> (Self, Receiver<Telemetry>) {
        let (sender, receiver) = channel(MAX_WAITING);
        (Self { sender, counts }, receiver)
    }

    /// Appends the transactions of encoded records. If the queue is full, drops and counts the
    /// rest.
    pub fn offer(&self, records: &[u8]) {
        for transaction in record::decoded(records) {
            match self.sender.try_reserve() {
                Ok(place) => place.send(Telemetry::Request(Box::new(transaction.into_owned()))),
                Err(_) => {
                    let spans = spans::count(&transaction);
                    self.counts.dropped(OtlpSignal::Spans, OtlpDrop::QueueFull, spans);
                }
            }
        }
    }

    /// Appends a message. If the queue is full, drops and counts the message.
    pub fn tell(&self, level: Level, text: &str) {
        let message = Telemetry::Message { at: clock::wall(), level, text: text.to_owned() };
        if self.sender.try_send(message).is_err() {
            self.counts.dropped(OtlpSignal::LogRecords, OtlpDrop::QueueFull, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::admin::metrics::Exposition;

    #[test]
    fn a_full_queue_drops_and_counts_instead_of_waiting() {
        let counts = Arc::<OtlpCounts>::default();
        let (queue, mut receiver) = OtlpQueue::new(Arc::clone(&counts));
        let mut records = Vec::new();
        record::encode(&Transaction { origin_ttfb: Some(7), ..Default::default() }, &mut records);
        (0..MAX_WAITING + 3).for_each(|_| queue.offer(&records));
        queue.tell(Level::Warning, "late");
        let mut exposition = Exposition::default();
        counts.expose(&mut exposition);
        let text = exposition.finish();
        for line in [
            "foxy_otlp_dropped_total{signal=\"spans\",reason=\"queue-full\"} 6",
            "foxy_otlp_dropped_total{signal=\"log-records\",reason=\"queue-full\"} 1",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let first = receiver.try_recv().expect("an item");
        assert!(matches!(first, Telemetry::Request(request) if request.origin_ttfb == Some(7)));
    }
}
