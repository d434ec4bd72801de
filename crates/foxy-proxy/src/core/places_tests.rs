//! Tests which connection gives up its place to a new connection, and when new connections are
//! refused.

use super::*;

/// Creates places (slots for connections) without the delay `YIELD_GRACE`.
fn places(limit: usize, share: usize, descriptors: usize) -> Arc<Places> {
    let mut places = Places::new(limit, share, descriptors);
    Arc::get_mut(&mut places).expect("nobody else has it").grace = None;
    places
}

fn client(number: u8) -> ClientBlock {
    IpAddr::from([192, 0, 2, number]).into()
}

fn taken(places: &Arc<Places>, number: u8) -> Place {
    waiting(places.take(Some(client(number))))
}

fn waiting(taken: Result<(Place, bool), NoPlace>) -> Place {
    let place = taken.unwrap_or_else(|full| panic!("no place: {full:?}")).0;
    place.activity.begin_wait(Instant::now());
    place
}

fn refused(places: &Arc<Places>, number: u8) -> Option<NoPlace> {
    places.take(Some(client(number))).err()
}

fn has_ended(place: &Place) -> bool {
    place.activity.state.load(Ordering::Acquire) == ENDING
}

/// Marks a connection as idle, `seconds` seconds later than all other connections.
fn waits_since(place: &Place, seconds: u64) {
    place.activity.begin_wait(Instant::now() + Duration::from_secs(seconds));
}

#[test]
fn the_connection_that_waits_longest_gives_its_place_up() {
    let places = places(3, 3, usize::MAX);
    let held: Vec<Place> = (1..=3).map(|number| taken(&places, number)).collect();
    assert!(held[0].activity().begin_work());
    waits_since(&held[0], 1);
    assert!(held[1].activity().begin_work());
    let _fourth = taken(&places, 4);
    assert_eq!(held.iter().map(has_ended).collect::<Vec<_>>(), [false, false, true]);
    assert!(!held[2].activity().begin_work(), "no request begins where the place is gone");
    assert_eq!(places.taken(), 3);
}

#[test]
fn where_all_are_at_work_nobody_ends_and_whoever_waits_next_does() {
    let places = places(2, 2, usize::MAX);
    let held = [taken(&places, 1), taken(&places, 2)];
    assert!(held.iter().all(|place| place.activity().begin_work()));
    assert_eq!(refused(&places, 3), Some(NoPlace::All));
    assert!(held.iter().all(|place| place.activity().begin_work()), "a connection at work goes on");
    waits_since(&held[1], 1);
    let third = taken(&places, 3);
    assert_eq!((has_ended(&held[0]), has_ended(&held[1])), (false, true));
    drop(third);
    assert!(refused(&places, 4).is_none(), "a place that is free is taken");
}

#[test]
fn a_connection_that_has_just_come_ends_for_its_own_client_alone() {
    let mut places = Places::new(4, 1, usize::MAX);
    // This `YIELD_GRACE` is longer than the test can run, even on a busy machine.
    Arc::get_mut(&mut places).expect("nobody else has it").grace = Some(Duration::from_secs(3600));
    let held: Vec<Place> = (1..=4).map(|number| taken(&places, number)).collect();
    held.iter().for_each(|place| waits_since(place, 1));
    assert_eq!(refused(&places, 5), Some(NoPlace::Soon), "its request may be on the way");
    assert!(refused(&places, 1).is_none() && has_ended(&held[0]));
}

#[test]
fn a_client_with_many_places_gives_one_up_without_delay() {
    let mut places = Places::new(8, 8, usize::MAX);
    Arc::get_mut(&mut places).expect("nobody else has it").grace = Some(Duration::from_secs(3600));
    let modest: Vec<Place> = (2..=6).map(|number| taken(&places, number)).collect();
    modest.iter().for_each(|place| waits_since(place, 1));
    let greedy: Vec<Place> = (0..3).map(|_| taken(&places, 1)).collect();
    assert_eq!(refused(&places, 7), Some(NoPlace::Soon), "a modest client waits longest");
    modest.iter().for_each(|place| assert!(place.activity().begin_work()));
    assert_eq!(refused(&places, 1), Some(NoPlace::Soon), "a burst does not end itself");
    assert!(refused(&places, 7).is_none() && has_ended(&greedy[0]));
}

#[test]
fn a_client_beyond_its_share_ends_its_own_connection_or_is_refused() {
    let places = places(8, 2, usize::MAX);
    let other = taken(&places, 9);
    let held = [taken(&places, 1), taken(&places, 1)];
    assert!(held[0].activity().begin_work());
    let third = taken(&places, 1);
    assert_eq!([&other, &held[0], &held[1]].map(has_ended), [false, false, true]);
    assert!(third.activity().begin_work());
    assert_eq!(refused(&places, 1), Some(NoPlace::Client));
    assert!(refused(&places, 2).is_none());
    drop(held);
    drop(third);
    assert!(places.table().clients.len() == 1, "clients without connections are forgotten");
}

#[test]
fn a_client_that_a_balancer_names_has_its_share_from_then_on() {
    let places = places(8, 1, usize::MAX);
    let unnamed: Vec<Place> = (0..3).map(|_| waiting(places.take(None))).collect();
    assert_eq!(unnamed[0].name(client(1)), Ok(false));
    assert_eq!(unnamed[1].name(client(1)), Ok(true), "the first waits, and ends");
    assert!(unnamed[1].activity().begin_work());
    assert_eq!(unnamed[2].name(client(1)), Err(NoPlace::Client));
    assert_eq!(unnamed[2].name(client(2)), Ok(false));
}

#[test]
fn a_place_that_is_given_up_ends_its_task_even_before_that_is_known() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let places = places(1, 1, usize::MAX);
        let first = taken(&places, 1);
        let _second = taken(&places, 2);
        let task = tokio::spawn(std::future::pending::<()>());
        first.activity().set_task(task.abort_handle());
        assert!(task.await.expect_err("it never ends by itself").is_cancelled());
    });
}

#[tokio::test]
async fn where_descriptors_are_short_a_connection_waits_for_a_place() {
    let places = places(9, 9, 2);
    let held = [taken(&places, 1), taken(&places, 2)];
    assert!(held.iter().all(|place| place.activity().begin_work()));
    for free in [0, 1] {
        let freed = places.freed();
        tokio::pin!(freed);
        freed.as_mut().enable();
        assert_eq!(refused(&places, 3), Some(NoPlace::Descriptors));
        if free == 0 {
            waits_since(&held[0], 1);
            freed.await;
            let third = taken(&places, 3);
            assert!(has_ended(&held[0]) && third.activity().begin_work());
            std::mem::forget(third);
        }
    }
    let freed = places.freed();
    tokio::pin!(freed);
    freed.as_mut().enable();
    let [_, second] = held;
    drop(second);
    freed.await;
    assert!(refused(&places, 4).is_none());
}

#[test]
fn refusals_at_a_time_are_bounded() {
    let places = places(1, 1, usize::MAX);
    let told: Vec<_> = std::iter::from_fn(|| places.refuse()).take(1000).collect();
    assert_eq!(told.len(), 256);
    drop(told);
    assert!(places.refuse().is_some());
}

#[test]
fn one_client_is_an_ipv4_address_or_the_64_of_an_ipv6_address() {
    let block = |text: &str| ClientBlock::from(text.parse::<IpAddr>().expect("an address"));
    for (one, other, same) in [
        ("192.0.2.1", "192.0.2.1", true),
        ("192.0.2.1", "192.0.2.2", false),
        ("192.0.2.1", "::ffff:192.0.2.1", true),
        ("2001:db8::1", "2001:db8::ffff:1", true),
        ("2001:db8::1", "2001:db8:0:1::1", false),
        ("::ffff:0:0", "::1", false),
    ] {
        assert_eq!(block(one) == block(other), same, "{one} {other}");
    }
}
