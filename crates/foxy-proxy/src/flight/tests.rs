//! Tests what a flight (shared fetch) guarantees to its readers and to its fill, while readers
//! join, fall behind or leave.

use super::*;
use crate::cache::epoch::test_epoch;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Memory budget in bytes of the flight in each test. A test has no other flight.
const WINDOW: usize = 1 << 20;

fn flight() -> Arc<Flight> {
    Flight::new(test_epoch(0), Arc::new(MemoryBudget::new(WINDOW)))
}

/// Polls a future once. Returns its result if it is ready.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn bytes(length: usize, value: u8) -> Bytes {
    Bytes::from(vec![value; length])
}

/// Reads all bytes that are available now. Returns the bytes and the result of the last read.
fn read(reader: &Reader) -> (Vec<u8>, Option<Piece>) {
    let mut all = Vec::new();
    loop {
        match now(reader.next()) {
            Some(Piece::Data(data)) => all.extend_from_slice(&data),
            last => return (all, last),
        }
    }
}

#[tokio::test]
async fn every_reader_gets_every_byte_and_the_end() {
    let flight = flight();
    let early = flight.join().expect("open");
    flight.write(Bytes::from_static(b"abc")).await;
    let late = flight.join().expect("the first bytes are kept");
    flight.write(Bytes::from_static(b"def")).await;
    flight.end(Ok(Headers::new()));
    for reader in [early, late] {
        let (all, last) = read(&reader);
        assert_eq!(all, b"abcdef");
        assert!(matches!(last, Some(Piece::End(_))), "{last:?}");
    }
}

#[tokio::test]
async fn tiny_chunks_need_little_more_memory_than_their_bytes() {
    const BYTES: usize = 20_000;
    let flight = flight();
    let stalled = flight.join().expect("open");
    for number in 0..BYTES {
        assert!(now(flight.write(bytes(1, number as u8))).is_some(), "{number}");
    }
    let held = flight.state().held();
    assert!(held < BYTES + BYTES / 32, "{held} bytes of memory");
    let (mut pieces, mut all) = (0, Vec::new());
    while let Some(Piece::Data(data)) = now(stalled.next()) {
        pieces += 1;
        all.extend_from_slice(&data);
    }
    let expected: Vec<u8> = (0..BYTES).map(|number| number as u8).collect();
    assert!(all == expected && pieces < 10, "{pieces} pieces");
}

#[tokio::test]
async fn tiny_chunks_that_a_slow_reader_leaves_count_with_their_overhead() {
    const FEWEST: usize = 32;
    let flight = flight();
    let (fast, slow) = (flight.join().expect("open"), flight.join().expect("open"));
    let mut written = 0;
    while now(flight.write(bytes(1, 7))).is_some() {
        written += 1;
        assert!(matches!(now(fast.next()), Some(Piece::Data(_))));
        assert!(written < WINDOW / FEWEST, "no memory is counted for the chunks");
    }
    assert_eq!(read(&slow).0.len(), written + 1);
}

#[tokio::test]
async fn an_origin_that_breaks_is_never_a_complete_body() {
    let flight = flight();
    let reader = flight.join().expect("open");
    flight.write(Bytes::from_static(b"abc")).await;
    flight.end(Err(UpstreamError::Reset));
    let (all, last) = read(&reader);
    assert_eq!(all, b"abc");
    assert!(matches!(last, Some(Piece::Broken)), "{last:?}");
}

#[tokio::test]
async fn what_readers_have_taken_is_let_go_and_then_nobody_can_join() {
    let flight = flight();
    let reader = flight.join().expect("open");
    for _ in 0..5 {
        flight.write(bytes(WINDOW / 2, 1)).await;
        assert!(matches!(now(reader.next()), Some(Piece::Data(_))));
    }
    flight.write(bytes(1, 1)).await;
    assert!(flight.state().held() <= 2 * WINDOW, "{} bytes are held", flight.state().held());
    assert!(flight.join().is_none());
}

/// Creates a reader of a flight. Passes more bytes through the flight than it keeps for late
/// readers, so that the first bytes leave memory. Returns the reader and the bytes that it has
/// read.
async fn half_way(flight: &Arc<Flight>) -> (Reader, Vec<u8>) {
    let reader = flight.join().expect("open");
    flight.keep(Keeping::Parts { fill: 7, bytes: 0 });
    let mut all = Vec::new();
    for value in 1..=5 {
        flight.write(bytes(WINDOW / 2, value)).await;
        all.extend(read(&reader).0);
    }
    (reader, all)
}

#[tokio::test]
async fn a_late_reader_takes_a_place_once_it_has_read_what_is_gone() {
    let flight = flight();
    let (early, mut all) = half_way(&flight).await;
    let late = flight.join().expect("it can be read back");
    assert!(late.is_late() && matches!(now(late.next()), Some(Piece::LeftBehind)));
    for value in 6..=9 {
        flight.write(bytes(WINDOW / 2, value)).await;
        all.extend(read(&early).0);
    }
    assert_eq!(flight.state().held(), WINDOW, "a window stays for it");
    let held = all.len() - WINDOW;
    assert!(!late.catches_up(held as u64 - 1) && !late.catches_up(all.len() as u64 + 1));
    assert!(late.catches_up(held as u64 + 10) && !late.is_late());
    assert_eq!(read(&late).0, all[held + 10..]);
    flight.end(Ok(Headers::new()));
    assert!(matches!(now(late.next()), Some(Piece::End(_))));
}

#[tokio::test]
async fn a_late_reader_that_waits_is_not_held_up_by_one_that_stalls() {
    tokio::time::pause();
    let flight = flight();
    let (stalled, all) = half_way(&flight).await;
    let late = flight.join().expect("it can be read back");
    let waiting = late.kept_beyond(0);
    let filling = async {
        for _ in 0..10 {
            flight.write(bytes(WINDOW / 2, 6)).await;
        }
        flight.keep(Keeping::Parts { fill: 7, bytes: all.len() as u64 });
    };
    tokio::join!(waiting, filling);
    assert!(matches!(now(stalled.next()), Some(Piece::LeftBehind)));
}

#[tokio::test]
async fn a_late_reader_that_was_left_behind_again_takes_no_place_any_more() {
    tokio::time::pause();
    let flight = flight();
    let (early, all) = half_way(&flight).await;
    let late = flight.join().expect("it can be read back");
    assert!(late.catches_up(all.len() as u64));
    let following = async { while let Piece::Data(_) = early.next().await {} };
    let filling = async {
        for _ in 0..4 {
            flight.write(bytes(WINDOW / 2, 6)).await;
        }
        flight.end(Ok(Headers::new()));
    };
    tokio::join!(following, filling);
    assert!(matches!(now(late.next()), Some(Piece::LeftBehind)));
    assert!(!late.is_late() && !late.catches_up(all.len() as u64 + 4 * WINDOW as u64 / 2));
}

#[tokio::test]
async fn a_fill_waits_for_its_only_reader_however_slow() {
    tokio::time::pause();
    let flight = flight();
    let reader = flight.join().expect("open");
    flight.write(bytes(WINDOW, 1)).await;
    let mut blocked = pin!(flight.write(bytes(WINDOW, 2)));
    assert!(
        tokio::time::timeout(SLOW_READER_PATIENCE * 10, &mut blocked).await.is_err(),
        "it ran ahead of its reader"
    );
    assert!(matches!(now(reader.next()), Some(Piece::Data(_))));
    blocked.await;
}

#[tokio::test]
async fn only_readers_a_window_behind_are_left_behind() {
    tokio::time::pause();
    let flight = flight();
    let [slow, behind, fast] = [(); 3].map(|()| flight.join().expect("open"));
    flight.write(bytes(WINDOW, 1)).await;
    read(&behind);
    read(&fast);
    let following = async { while let Piece::Data(_) = fast.next().await {} };
    let filling = async {
        flight.write(bytes(WINDOW / 2, 2)).await;
        flight.end(Ok(Headers::new()));
    };
    tokio::join!(following, filling);
    assert!(matches!(now(slow.next()), Some(Piece::LeftBehind)));
    let (rest, last) = read(&behind);
    assert_eq!(rest.len(), WINDOW / 2, "it was within the window");
    assert!(matches!(last, Some(Piece::End(_))), "{last:?}");
}

#[tokio::test]
async fn a_flight_with_a_reader_left_behind_is_not_deserted_and_runs_on() {
    tokio::time::pause();
    let flight = flight();
    let [slow, fast] = [(); 2].map(|()| flight.join().expect("open"));
    flight.write(bytes(WINDOW, 1)).await;
    read(&fast);
    let following = async { while let Piece::Data(_) = fast.next().await {} };
    let filling = async {
        flight.write(bytes(WINDOW, 2)).await;
        flight.end(Ok(Headers::new()));
    };
    tokio::join!(following, filling);
    assert!(matches!(now(slow.next()), Some(Piece::LeftBehind)));
    drop(fast);
    assert!(now(flight.deserted()).is_none(), "it may still be read back from the store");
    for _ in 0..10 {
        assert!(now(flight.write(bytes(WINDOW, 3))).is_some(), "nobody is waited for");
    }
    assert_eq!(flight.state().held(), 0, "nothing is held for it");
    slow.leave();
    assert!(now(flight.deserted()).is_some());
}

#[tokio::test]
async fn a_reader_learns_what_is_kept_beyond_its_place() {
    let flight = flight();
    let reader = flight.join().expect("open");
    flight.keep(Keeping::Parts { fill: 7, bytes: 10 });
    assert!(matches!(now(reader.kept_beyond(9)), Some(Keeping::Parts { fill: 7, bytes: 10 })));
    assert!(now(reader.kept_beyond(10)).is_none(), "it waits for more");
    flight.keep_if(Keeping::end);
    assert!(matches!(now(reader.kept_beyond(10)), Some(Keeping::Nothing)));
}

#[tokio::test]
async fn a_deserted_flight_takes_nobody_on() {
    let flight = flight();
    drop(flight.join().expect("open"));
    flight.deserted().await;
    assert!(
        flight.join().is_none(),
        "the fill is giving up; whoever comes now needs a fetch of its own"
    );
}

#[tokio::test]
async fn a_flight_that_ends_without_a_head_tells_its_readers() {
    let flight = flight();
    let reader = flight.join().expect("open");
    flight.end(Err(UpstreamError::NoResponse));
    let event = now(reader.event(false));
    assert!(
        matches!(
            event,
            Some(FlightEvent::Outcome(FlightOutcome::Failed(UpstreamError::NoResponse)))
        ),
        "a reader would wait for ever: {event:?}"
    );
}

#[test]
fn interim_responses_are_the_leaders_alone_and_come_first() {
    let flight = flight();
    let [leader, follower] = [(); 2].map(|()| flight.join().expect("open"));
    flight.interim(ResponseHead::new(103));
    assert!(now(follower.event(false)).is_none());
    assert!(
        matches!(now(leader.event(true)), Some(FlightEvent::Interim(head)) if head.status == 103)
    );
    assert!(now(leader.event(true)).is_none());
}

fn board(flights: &Flights, number: u64) -> Boarding {
    let fits = |flight: &Flight| flight.epoch == test_epoch(number);
    flights.board(Key([7; 16]), test_epoch(number), fits, || None)
}

#[test]
fn a_flight_from_before_an_invalidation_is_not_joined() {
    let flights = Flights::new(WINDOW);
    let key = Key([7; 16]);
    let Boarding::Leads(old, _old_reader) = board(&flights, 1) else { panic!("the first leads") };
    assert!(matches!(board(&flights, 1), Boarding::Follows(_)));
    let Boarding::Leads(new, _new_reader) = board(&flights, 2) else { panic!("it joined") };
    flights.land(key, &old);
    assert!(matches!(board(&flights, 2), Boarding::Follows(_)), "the old one took the new one off");
    flights.land(key, &new);
    assert!(matches!(board(&flights, 2), Boarding::Leads(..)));
}
