//! A fill's body on its way from the origin to the flight's readers and the keeper. What is done with the head is in `fill`.

use crate::behind::Keeping;
use crate::counters::Counter;
use crate::flight::Flight;
use crate::keeper::{Keeper, Kept};
use crate::not_kept::NotKept;
use crate::upstream::{BodyEvent, UpstreamError, UpstreamExchange};
use crate::worker::Worker;
use foxy_http::Headers;

/// A fill without readers goes on when at most this many bytes are missing, or one part in twenty (as Squid's
/// quick_abort does).
const QUICK_ABORT: u64 = 64 << 10;

/// Carries the body to the readers and the keeper. Should the keeper keep it no longer, `refused` is told.
pub(crate) async fn carry(
    worker: &Worker,
    flight: &Flight,
    exchange: &mut UpstreamExchange,
    (length, mut keeper): (Option<u64>, Option<Keeper>),
    refused: impl Fn(NotKept),
) -> (Result<Headers, UpstreamError>, Option<Keeper>) {
    let mut trailers = Headers::new();
    let mut received = 0;
    loop {
        let event = tokio::select! {
            biased;
            () = flight.deserted(), if !worth_finishing(keeper.as_ref(), received, length) => {
                return (Err(UpstreamError::NoResponse), None);
            }
            event = exchange.next() => event,
        };
        match event {
            Ok(BodyEvent::Data(data)) => {
                received += data.len() as u64;
                worker.counters.add(Counter::BytesFromOrigins, data.len() as u64);
                if let Some(kept) = &mut keeper {
                    match kept.take(&data) {
                        Kept::Yes => drop(flight.keeping.send_if_modified(|keeping| keeping.advance(kept))),
                        Kept::No(why) => {
                            refused(why);
                            keeper = None;
                        }
                    }
                }
                if keeper.is_none() {
                    flight.keeping.send_if_modified(Keeping::end);
                }
                flight.write(data).await;
            }
            Ok(BodyEvent::Trailers(found)) => trailers = found,
            Ok(BodyEvent::End) => return (Ok(trailers), keeper),
            Err(error) => return (Err(error), None),
        }
    }
}

/// Whether to go on without readers: what is to be stored and nearly there.
fn worth_finishing(keeper: Option<&Keeper>, received: u64, length: Option<u64>) -> bool {
    let Some(length) = length.filter(|_| keeper.is_some()) else { return false };
    let missing = length.saturating_sub(received);
    missing <= QUICK_ABORT || missing <= length / 20
}
