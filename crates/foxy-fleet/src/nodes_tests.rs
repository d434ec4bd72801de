//! Tests which node another node asks for a key, and when a node counts as lost or busy. Also tests
//! nodes that join and leave.

use super::*;

fn nodes(own: &str) -> Nodes {
    let member = |name: &str| format!("{name} https://{name}.test:1").parse().expect("a node");
    let all = ["a", "b", "c"].map(member).to_vec();
    let own = own.parse().expect("a name");
    Nodes::new(Members::new(all, &own).expect("a fleet"), 32)
}

/// Returns a key with this owner. The node `second` is the owner's first substitute.
fn key(nodes: &Nodes, owner: usize, second: usize) -> Vec<u8> {
    let keys = (0..).map(|number: u32| number.to_be_bytes().to_vec());
    let numbers = |key: &[u8]| nodes.order(key).map(|node| node.map(|node| node.number));
    let is_wanted = |key: &Vec<u8>| numbers(key) == [Some(owner), Some(second)];
    let mut found = keys.filter(is_wanted);
    found.next().expect("a key")
}

fn chosen(nodes: &Nodes, key: &[u8], tried: &[usize]) -> Option<usize> {
    nodes.choose(key, tried).map(|chosen| chosen.node.number)
}

#[test]
fn a_node_asks_the_owner_then_the_second_and_never_itself() {
    let nodes = nodes("a");
    let key_of_b = key(&nodes, 1, 2);
    assert_eq!(chosen(&nodes, &key_of_b, &[]), Some(1));
    assert_eq!(chosen(&nodes, &key_of_b, &[1]), Some(2));
    assert_eq!(chosen(&nodes, &key_of_b, &[1, 2]), None);
    let own_second = key(&nodes, 1, 0);
    assert_eq!(chosen(&nodes, &own_second, &[1]), None, "this node is the second");
    assert_eq!(chosen(&nodes, &key(&nodes, 0, 1), &[]), None, "this node is the owner");
}

#[test]
fn a_changed_list_moves_only_the_keys_of_its_new_and_former_members() {
    let members = |names: &[&str]| {
        let member = |name: &&str| format!("{name} https://{name}.test:1").parse().expect("a node");
        let all = names.iter().map(member).collect();
        Members::new(all, &"a".parse().expect("a name")).expect("a fleet")
    };
    let nodes = nodes("a");
    let [kept, moved] = [key(&nodes, 1, 2), key(&nodes, 2, 1)];
    nodes.fails(1);
    nodes.set_members(members(&["d", "b", "a"]));
    assert!(nodes.is_lost(1) && nodes.is_member(1), "a member keeps its number and state");
    nodes.pinged(1, Told::default());
    let owner = |key: &[u8]| nodes.order(key)[0].as_ref().map(|node| node.name.to_string());
    assert!(matches!(owner(&kept).as_deref(), Some("b" | "d")));
    assert_ne!(owner(&moved).as_deref(), Some("c"));
    assert!(!nodes.is_member(2) && nodes.node(2).is_some(), "requests in progress know c");
    assert_eq!(nodes.own().number, 0);
    nodes.set_members(members(&["a", "b", "c"]));
    assert_eq!(chosen(&nodes, &moved, &[]), Some(2), "c has its number again");
    assert!(!nodes.is_member(3), "d has left");
}

#[test]
fn a_lost_node_is_not_asked_until_it_answers_a_ping() {
    let nodes = nodes("a");
    let key = key(&nodes, 1, 2);
    assert!(nodes.fails(1) && !nodes.fails(1));
    assert_eq!(chosen(&nodes, &key, &[]), Some(2));
    let shares: Vec<_> = nodes.status().iter().map(|node| node.share).collect();
    assert_eq!(shares, [0.5, 0.0, 0.5]);
    nodes.pinged(1, Told::default());
    assert_eq!(chosen(&nodes, &key, &[]), Some(1));
    let missed: Vec<_> = (0..4).map(|_| nodes.misses_ping(1)).collect();
    assert_eq!((missed, nodes.is_lost(1)), (vec![false, false, true, false], true));
}

#[test]
fn a_node_that_answers_pings_but_no_requests_is_lost_for_some_pings() {
    let nodes = nodes("a");
    let miss = |count| (0..count).map(|_| nodes.misses_request(1)).collect::<Vec<_>>();
    assert_eq!(miss(2), [false, false]);
    nodes.works(1);
    assert_eq!(miss(2), [false, false]);
    nodes.answered(1, None, Told::default());
    assert_eq!(miss(4), [false, false, true, false]);
    for ping in 0..RESTING_PINGS {
        assert!(nodes.is_lost(1), "{ping}");
        nodes.pinged(1, Told::default());
    }
    assert!(!nodes.is_lost(1), "it is asked again");
    assert_eq!(miss(1), [true], "it is still silent");
    (0..RESTING_PINGS).for_each(|_| nodes.pinged(1, Told::default()));
    nodes.answered(1, None, Told::default());
    assert_eq!((miss(1), nodes.is_lost(1)), (vec![false], false), "it works again");
    assert!(nodes.fails(1));
    nodes.pinged(1, Told::default());
    assert!(!nodes.is_lost(1), "a node that accepts connections again is asked at once");
}

#[test]
fn a_node_that_sends_a_body_is_not_lost_although_it_misses_pings() {
    let nodes = nodes("a");
    for _ in 0..10 {
        assert!(!nodes.misses_ping(1) && !nodes.misses_ping(1));
        nodes.hears(1);
    }
    let missed: Vec<_> = (0..3).map(|_| nodes.misses_ping(1)).collect();
    assert_eq!((missed, nodes.is_lost(1)), (vec![false, false, true], true));
}

#[test]
fn a_node_with_other_settings_is_shown_and_reported_once() {
    let [a, b] = ["a", "b"].map(nodes);
    let tell = |text: &str| {
        b.set_settings(text);
        a.pinged(1, Told { settings: b.settings_hash(), ..Told::default() });
        let reported: Vec<_> = a.new_differences().iter().map(ToString::to_string).collect();
        (a.status()[1].differs, reported)
    };
    assert_eq!(tell("rule 2"), (false, vec![]), "unknown");
    a.set_settings("rule 1");
    assert_eq!(tell("rule 2"), (true, vec!["b".into()]));
    assert_eq!(tell("rule 3"), (true, vec![]));
    assert_eq!(tell("rule 1"), (false, vec![]));
    assert_eq!(tell("rule 2"), (true, vec!["b".into()]));
    a.pinged(1, Told::default());
    assert!(!a.status()[1].differs, "an older foxy tells no hash");
}

#[test]
fn patience_is_twice_the_p99_within_limits() {
    let nodes = nodes("a");
    let key = key(&nodes, 1, 2);
    let patience = || nodes.choose(&key, &[]).expect("another node").patience;
    assert_eq!(patience(), MOST_PATIENCE);
    let answer = |took| nodes.answered(1, Some(Duration::from_millis(took)), Told::default());
    (0..1000).for_each(|_| answer(1));
    assert_eq!(patience(), LEAST_PATIENCE);
    (0..1000).for_each(|_| answer(40));
    assert_eq!(patience(), Duration::from_millis(80));
    (0..1000).for_each(|_| answer(70_000));
    assert_eq!(patience(), MOST_PATIENCE);
}

#[test]
fn a_node_with_more_than_five_quarters_of_the_mean_load_is_busy() {
    for (own, others, expected) in [
        (NEVER_BUSY, &[0, 0][..], false),
        (100, &[80, 60], false),
        (101, &[80, 60], true),
        (1000, &[], false),
        (1000, &[1000], false),
    ] {
        assert_eq!(is_busy(own, others.iter().copied()), expected, "{own} {others:?}");
    }
    let nodes = nodes("a");
    let begun = (0..=NEVER_BUSY).map(|_| nodes.begin(b"key", Instant::ZERO)).last();
    let load = NEVER_BUSY + 1;
    assert_eq!(begun, Some(Told { load, rate: load, is_busy: true, ..Told::default() }));
    nodes.end();
    assert_eq!(nodes.load(), NEVER_BUSY);
}

#[test]
fn a_node_that_joins_or_leaves_has_fewer_keys_and_the_others_ask_it_first() {
    let [a, b] = ["a", "b"].map(nodes);
    let terms = JoinTerms { ramp: Duration::from_secs(60), former_owner: Duration::from_secs(600) };
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let key_of_b = key(&a, 1, 0);
    let tell = || a.pinged(1, Told { standing: b.standing(), ..Told::default() });
    let name = |node: Option<Arc<FleetNode>>| node.map(|node| node.name.to_string());
    b.join(terms, at(0));
    tell();
    assert_eq!(chosen(&a, &key_of_b, &[]), None, "a owns the key until b is ready");
    assert_eq!(name(a.former_owner(&key_of_b)).as_deref(), Some("b"));
    assert_eq!(a.status()[1].share, 0.0);
    b.tick(false, at(30));
    assert_eq!(b.standing().part, 0);
    b.tick(true, at(60));
    tell();
    let share = a.status()[1].share;
    assert!((0.04..0.06).contains(&share), "a tenth of its weight: {share}");
    b.tick(true, at(120));
    tell();
    assert_eq!(chosen(&a, &key_of_b, &[]), Some(1));
    assert_eq!(name(b.former_owner(&key_of_b)).as_deref(), Some("a"));
    assert_eq!(a.former_owner(&key_of_b), None, "a does not own the key");
    b.tick(true, at(700));
    assert_eq!(b.former_owner(&key_of_b), None, "b has had its time");
    b.leave(true, at(700));
    tell();
    assert_eq!((chosen(&a, &key_of_b, &[]), a.status()[1].standing.is_leaving), (None, true));
    assert_eq!(name(a.former_owner(&key_of_b)).as_deref(), Some("b"));
    assert_eq!(chosen(&b, &key_of_b, &[]), Some(0), "b itself asks the new owner");
    b.leave(false, at(701));
    tell();
    assert_eq!(chosen(&a, &key_of_b, &[]), Some(1));
    a.pinged(1, Told { standing: Standing { part: 0, is_leaving: true }, ..Told::default() });
    a.pinged(2, Told { standing: Standing { part: 0, is_leaving: true }, ..Told::default() });
    a.leave(true, at(702));
    assert_eq!(chosen(&a, &key_of_b, &[]), Some(1), "if all leave, all keep their keys");
}

#[test]
fn a_node_that_was_cut_off_asks_former_owners() {
    let nodes = nodes("a");
    let own = key(&nodes, 0, 1);
    let terms = JoinTerms { ramp: Duration::ZERO, former_owner: Duration::from_secs(600) };
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    nodes.join(terms, at(0));
    nodes.tick(true, at(1));
    nodes.tick(true, at(1000));
    assert_eq!(nodes.former_owner(&own), None);
    nodes.fails(1);
    nodes.pinged(1, Told::default());
    nodes.tick(true, at(1001));
    assert_eq!(nodes.former_owner(&own), None, "another node was there");
    nodes.fails(1);
    nodes.fails(2);
    nodes.pinged(1, Told::default());
    nodes.pinged(2, Told::default());
    nodes.tick(true, at(1002));
    assert_eq!(nodes.former_owner(&own).map(|node| node.number), Some(1));
}
