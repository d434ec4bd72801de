//! Tests of the name server's answers, both as packets and over a socket.

use super::answer::{Kind, Zone};
use super::{NameServer, NameServerOptions, QuestionCounts};
use foxy_base::random::Random;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

fn options() -> NameServerOptions {
    NameServerOptions {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        zone: "origin.test".into(),
        address: Ipv4Addr::LOCALHOST.into(),
        cost: Duration::from_millis(30),
        lifetime: Duration::from_secs(600),
    }
}

fn zone() -> Zone {
    Zone::new(&options()).expect("a zone")
}

fn question(name: &str, kind: RecordType) -> Message {
    let mut message = Message::new(7, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).expect("a name"), kind));
    message
}

/// Returns the zone's answer to a question: its kind, its delay and the message.
fn answered(asked: &Message) -> (Kind, Duration, Message) {
    let reply = zone().reply(&asked.to_vec().expect("encoded")).expect("an answer");
    (reply.kind, reply.after, Message::from_vec(&reply.packet).expect("a message"))
}

#[test]
fn every_name_of_the_zone_has_the_address_for_its_lifetime() {
    for name in ["h1.origin.test.", "H1.Origin.TEST.", "a.b.origin.test.", "origin.test."] {
        let (kind, _, answer) = answered(&question(name, RecordType::A));
        assert_eq!(
            (kind, answer.metadata.id, answer.metadata.response_code),
            (Kind::Address, 7, ResponseCode::NoError)
        );
        assert!(answer.metadata.authoritative && answer.metadata.recursion_desired);
        let [record] = &*answer.answers else { panic!("{answer:?}") };
        assert_eq!(
            (record.ttl, &record.data),
            (600, &RData::A(Ipv4Addr::LOCALHOST.into())),
            "{name}"
        );
        assert_eq!(answer.queries, question(name, RecordType::A).queries);
    }
}

#[test]
fn a_name_costs_the_same_however_it_is_written_and_names_differ() {
    let cost = |name: &str, kind| answered(&question(name, kind)).1;
    let one = cost("h1.origin.test.", RecordType::A);
    assert_eq!(one, cost("H1.ORIGIN.test.", RecordType::AAAA));
    let costs: Vec<Duration> =
        (0..100).map(|number| cost(&format!("h{number}.origin.test."), RecordType::A)).collect();
    let (least, most) = (costs.iter().min().expect("some"), costs.iter().max().expect("some"));
    assert!(
        *least >= Duration::from_millis(15) && *most < Duration::from_millis(45),
        "{least:?} {most:?}"
    );
    assert!(*most > *least + Duration::from_millis(20), "{least:?} {most:?}");
}

#[test]
fn missing_record_types_get_a_cachable_negative_answer() {
    for kind in [RecordType::AAAA, RecordType::MX, RecordType::HTTPS] {
        let (found, _, answer) = answered(&question("h1.origin.test.", kind));
        assert_eq!((found, answer.metadata.response_code), (Kind::Nothing, ResponseCode::NoError));
        assert!(answer.answers.is_empty());
        let [authority] = &*answer.authorities else { panic!("{answer:?}") };
        assert_eq!((authority.record_type(), authority.ttl), (RecordType::SOA, 600));
    }
}

#[test]
fn names_of_others_and_what_is_no_plain_question_are_refused_at_once() {
    let mut twice = question("h1.origin.test.", RecordType::A);
    twice.add_query(Query::query(
        Name::from_ascii("h2.origin.test.").expect("a name"),
        RecordType::A,
    ));
    let mut update = question("origin.test.", RecordType::SOA);
    update.metadata.op_code = OpCode::Notify;
    for (asked, code) in [
        (question("example.org.", RecordType::A), ResponseCode::Refused),
        (question("notorigin.test.", RecordType::A), ResponseCode::Refused),
        (question("test.", RecordType::A), ResponseCode::Refused),
        (question(".", RecordType::NS), ResponseCode::Refused),
        (twice, ResponseCode::FormErr),
        (update, ResponseCode::NotImp),
    ] {
        let (kind, after, answer) = answered(&asked);
        assert_eq!(
            (kind, after, answer.metadata.response_code),
            (Kind::Refused, Duration::ZERO, code)
        );
        assert!(answer.answers.is_empty());
    }
}

#[test]
fn a_question_with_edns_gets_an_answer_with_edns() {
    let mut asked = question("h1.origin.test.", RecordType::A);
    assert!(answered(&asked).2.edns.is_none());
    asked.set_edns(Edns::new());
    assert!(answered(&asked).2.edns.is_some());
}

#[test]
fn packets_that_are_no_questions_are_dropped() {
    let mut answer = question("h1.origin.test.", RecordType::A);
    answer.metadata.message_type = MessageType::Response;
    assert!(zone().reply(&answer.to_vec().expect("encoded")).is_none());
    let whole = question("h1.origin.test.", RecordType::A).to_vec().expect("encoded");
    for length in 0..whole.len() {
        assert!(zone().reply(&whole[..length]).is_none(), "{length} bytes of {}", whole.len());
    }
    // The compressed name points to itself, so a reader would follow it for ever.
    let header = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    assert!(zone().reply(&[&header[..], &[0xC0, 12, 0, 1, 0, 1]].concat()).is_none());
}

#[test]
fn whatever_bytes_come_every_answer_is_a_message_with_their_number() {
    let (zone, mut random) = (zone(), Random::new(1));
    let whole = question("h1.origin.test.", RecordType::A).to_vec().expect("encoded");
    let (mut answers, mut dropped) = (0, 0);
    for round in 0..20_000 {
        let mut packet = whole.clone();
        if round % 2 == 0 {
            let place = usize::try_from(random.below(packet.len() as u64)).expect("small");
            random.fill(&mut packet[place..=place]);
        } else {
            packet.resize(usize::try_from(random.below(100)).expect("small"), 0);
            random.fill(&mut packet);
        }
        match zone.reply(&packet) {
            Some(reply) => {
                let answer = Message::from_vec(&reply.packet).expect("a message");
                assert_eq!(answer.metadata.id.to_be_bytes(), packet[..2]);
                answers += 1;
            }
            None => dropped += 1,
        }
    }
    assert!(answers > 1000 && dropped > 1000, "{answers} {dropped}");
}

#[test]
fn a_zone_that_is_no_name_is_refused() {
    for zone in ["", ".", "a..b", "a b", &"x".repeat(64)] {
        let error =
            Zone::new(&NameServerOptions { zone: zone.into(), ..options() }).expect_err(zone);
        assert!(error.to_string().contains("give one such as origin.test"), "{error}");
    }
}

#[test]
fn questions_are_answered_over_a_socket_and_counted_and_the_rest_is_dropped() {
    let server = NameServer::start(&NameServerOptions { cost: Duration::ZERO, ..options() })
        .expect("it starts");
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    client.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
    client.connect(server.address()).expect("connected");
    client.send(b"not a question").expect("sent");
    for (name, kind) in [
        ("h1.origin.test.", RecordType::A),
        ("h1.origin.test.", RecordType::AAAA),
        ("example.org.", RecordType::A),
    ] {
        client.send(&question(name, kind).to_vec().expect("encoded")).expect("sent");
        let mut packet = [0; 512];
        let length = client.recv(&mut packet).expect("an answer");
        let answer = Message::from_vec(&packet[..length]).expect("a message");
        assert_eq!(answer.metadata.message_type, MessageType::Response);
    }
    assert_eq!(server.asked(), QuestionCounts { addresses: 1, nothing: 1, refused: 1, dropped: 1 });
}
