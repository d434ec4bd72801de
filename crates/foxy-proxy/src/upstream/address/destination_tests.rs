//! Tests the decisions of the destination policy for every kind of address.

use super::*;

use DestinationRefusal as Refusal;

fn ask(policy: &DestinationPolicy, address: &str) -> Result<(), DestinationRefusal> {
    let ip: IpAddr = address.parse().expect(address);
    policy.check_address(SocketAddr::new(ip, 80), ChosenBy::Client)
}

#[test]
fn public_addresses_are_allowed() {
    let cases = [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.0.1",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450::1",
        "64:ff9b::101:101",
        "2002:101:101::1",
    ];
    for address in cases {
        assert_eq!(ask(&DestinationPolicy::default(), address), Ok(()), "{address}");
    }
}

#[test]
fn addresses_that_are_not_public_are_refused_by_name() {
    let cases = [
        ("127.0.0.1", Refusal::Loopback),
        ("127.255.255.254", Refusal::Loopback),
        ("::1", Refusal::Loopback),
        ("10.0.0.1", Refusal::Private),
        ("172.16.0.1", Refusal::Private),
        ("172.31.255.255", Refusal::Private),
        ("192.168.1.1", Refusal::Private),
        ("fd12:3456::1", Refusal::Private),
        ("fec0::1", Refusal::Private),
        ("64:ff9b:1::a00:1", Refusal::Private),
        ("169.254.1.1", Refusal::LinkLocal),
        ("fe80::1", Refusal::LinkLocal),
        ("100.64.0.1", Refusal::SharedAddressSpace),
        ("100.127.255.255", Refusal::SharedAddressSpace),
        ("169.254.169.254", Refusal::Metadata),
        ("fd00:ec2::254", Refusal::Metadata),
        ("100.100.100.200", Refusal::Metadata),
        ("168.63.129.16", Refusal::Metadata),
        ("0.0.0.0", Refusal::Unspecified),
        ("0.1.2.3", Refusal::Unspecified),
        ("::", Refusal::Unspecified),
        ("224.0.0.1", Refusal::Multicast),
        ("ff02::1", Refusal::Multicast),
        ("255.255.255.255", Refusal::Broadcast),
        ("240.0.0.1", Refusal::Reserved),
        ("192.0.0.8", Refusal::Reserved),
        ("198.18.0.1", Refusal::Reserved),
        ("2001:20::1", Refusal::Reserved),
        ("100::1", Refusal::Reserved),
        ("5f00::1", Refusal::Reserved),
        ("4000::1", Refusal::Reserved),
    ];
    for (address, refusal) in cases {
        assert_eq!(ask(&DestinationPolicy::default(), address), Err(refusal), "{address}");
    }
}

#[test]
fn documentation_addresses_are_not_refused() {
    for address in ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"] {
        assert_eq!(ask(&DestinationPolicy::default(), address), Ok(()), "{address}");
    }
}

#[test]
fn ipv4_addresses_within_ipv6_ones_are_judged() {
    let cases = [
        ("::ffff:127.0.0.1", Err(Refusal::Loopback)),
        ("::ffff:169.254.169.254", Err(Refusal::Metadata)),
        ("::ffff:1.1.1.1", Ok(())),
        ("::127.0.0.1", Err(Refusal::Reserved)),
        ("64:ff9b::7f00:1", Err(Refusal::Loopback)),
        ("64:ff9b::a9fe:a9fe", Err(Refusal::Metadata)),
        ("2002:7f00:1::", Err(Refusal::Loopback)),
        ("2002:a00:1::1", Err(Refusal::Private)),
        ("2001:0:7f00:1::fefe:fefe", Err(Refusal::Loopback)),
        ("2001:0:101:101::80ff:fffe", Err(Refusal::Loopback)),
        ("2001:0:101:101::fefe:fefe", Ok(())),
    ];
    for (address, expected) in cases {
        assert_eq!(ask(&DestinationPolicy::default(), address), expected, "{address}");
    }
}

#[test]
fn allowed_blocks_open_just_themselves() {
    let blocks = ["10.1.0.0/16", "fd00:ec2::254", "::1"];
    let allowed = blocks.map(|block| block.parse().expect(block)).to_vec();
    let policy = DestinationPolicy { allowed, ..DestinationPolicy::default() };
    let cases = [
        ("10.1.2.3", Ok(())),
        ("::ffff:10.1.2.3", Ok(())),
        ("64:ff9b::a01:203", Ok(())),
        ("10.2.0.1", Err(Refusal::Private)),
        ("fd00:ec2::254", Ok(())),
        ("fd00:ec2::253", Err(Refusal::Private)),
        ("::1", Ok(())),
        ("127.0.0.1", Err(Refusal::Loopback)),
    ];
    for (address, expected) in cases {
        assert_eq!(ask(&policy, address), expected, "{address}");
    }
}

#[test]
fn the_proxy_never_dials_itself() {
    let check = |own: &str, dialled: &str, expected| {
        let own = vec![own.parse().expect(own)];
        let allowed = ["0.0.0.0/0", "::/0"].map(|block| block.parse().expect(block)).to_vec();
        let policy = DestinationPolicy { own, allowed, ..DestinationPolicy::default() };
        for chosen in [ChosenBy::Client, ChosenBy::Operator] {
            assert_eq!(
                policy.check_address(dialled.parse().expect(dialled), chosen),
                expected,
                "{own:?} {dialled}",
                own = policy.own
            );
        }
    };
    let own = Err(Refusal::OwnAddress);
    check("127.0.0.1:3128", "127.0.0.1:3128", own);
    check("127.0.0.1:3128", "[::ffff:127.0.0.1]:3128", own);
    check("127.0.0.1:3128", "0.0.0.0:3128", own);
    check("127.0.0.1:3128", "127.0.0.1:80", Ok(()));
    check("127.0.0.1:3128", "127.0.0.2:3128", Ok(()));
    check("0.0.0.0:3128", "127.0.0.9:3128", own);
    check("[::]:3128", "[::1]:3128", own);
    check("[::]:3128", "127.0.0.1:3128", own);
}

#[test]
fn a_connection_from_the_machine_to_its_own_port_is_refused() {
    let own = vec!["0.0.0.0:3128".parse().expect("address")];
    let policy = DestinationPolicy { own, ..DestinationPolicy::default() };
    let by = |local: &str, peer: &str, chosen| {
        policy.check_connection(local.parse().expect(local), peer.parse().expect(peer), chosen)
    };
    let check = |local, peer| by(local, peer, ChosenBy::Client);
    assert_eq!(check("8.8.4.4:5000", "8.8.4.4:3128"), Err(Refusal::OwnAddress));
    assert_eq!(check("8.8.4.4:5000", "8.8.4.4:80"), Err(Refusal::OwnMachine));
    assert_eq!(by("8.8.4.4:5000", "8.8.4.4:80", ChosenBy::Operator), Ok(()));
    assert_eq!(check("8.8.4.4:5000", "8.8.8.8:3128"), Ok(()));
}

#[test]
fn a_public_address_of_the_machine_is_refused_however_it_is_written() {
    let own: IpAddr = "8.8.4.4".parse().expect("address");
    let check = |allowed: &[&str], address: &str, chosen| {
        let allowed = allowed.iter().map(|block| block.parse().expect("block")).collect();
        let policy = DestinationPolicy { allowed, ..DestinationPolicy::default() };
        policy.check_machine(address.parse().expect(address), chosen, |asked| asked == own)
    };
    let refused = Err(Refusal::OwnMachine);
    for address in ["8.8.4.4", "::ffff:8.8.4.4", "64:ff9b::808:404", "2002:808:404::1"] {
        assert_eq!(check(&[], address, ChosenBy::Client), refused, "{address}");
        assert_eq!(check(&[], address, ChosenBy::Operator), Ok(()), "{address}");
        assert_eq!(check(&["8.8.4.4/32"], address, ChosenBy::Client), Ok(()), "{address}");
    }
    assert_eq!(check(&[], "8.8.8.8", ChosenBy::Client), Ok(()));
    assert_eq!(check(&["8.8.8.0/24"], "8.8.4.4", ChosenBy::Client), refused);
}

#[test]
fn what_an_operator_can_set_is_named_where_programs_show_it() {
    for (refusal, phrase) in [
        (Refusal::Private, "Private address: see --allow-destination"),
        (Refusal::OwnMachine, "Address of the proxy's machine: see --allow-destination"),
        (Refusal::ConnectPort, "Port not in connect-ports: see --connect-port"),
    ] {
        assert_eq!(refusal.phrase(), phrase);
        let setting = phrase.rsplit(' ').next().expect("a word");
        assert!(refusal.remedy().is_some_and(|remedy| remedy.contains(setting)), "{refusal:?}");
    }
}

#[test]
fn what_the_operator_configured_may_be_private() {
    let address = "127.0.0.1:8080".parse().expect("address");
    assert_eq!(DestinationPolicy::default().check_address(address, ChosenBy::Operator), Ok(()));
}

#[test]
fn ports_are_checked() {
    let policy = DestinationPolicy::default();
    assert_eq!(policy.check_connect_port(443), Ok(()));
    assert_eq!(policy.check_connect_port(25), Err(Refusal::ConnectPort));
    let zero = "1.1.1.1:0".parse().expect("address");
    assert_eq!(policy.check_address(zero, ChosenBy::Operator), Err(Refusal::PortZero));
}
