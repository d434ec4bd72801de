//! Names whose addresses are known without asking a name server: those of `/etc/hosts`, and answers
//! that are still good. The resolver's own cache cannot be looked into without a question to a
//! server when it has no answer.

use hickory_resolver::Hosts;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// Answers that are kept.
const ANSWERS: usize = 4096;

/// What is known.
pub(crate) struct KnownNames {
    hosts: Arc<Hosts>,
    answers: RefCell<HashMap<Box<str>, Answer>>,
}

struct Answer {
    addresses: Rc<[IpAddr]>,
    until: Instant,
}

impl KnownNames {
    pub(crate) fn new(hosts: Arc<Hosts>) -> Self {
        Self { hosts, answers: RefCell::default() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Rc<[IpAddr]>> {
        self.answered(name, now()).or_else(|| self.in_hosts(name))
    }

    /// Keeps an answer as long as it is good.
    pub(crate) fn learn(&self, name: Box<str>, addresses: &Rc<[IpAddr]>, until: Instant) {
        let (mut answers, now) = (self.answers.borrow_mut(), now());
        if answers.len() >= ANSWERS {
            answers.retain(|_, answer| now < answer.until);
        }
        if answers.len() >= ANSWERS {
            answers.clear();
        }
        answers.insert(name, Answer { addresses: Rc::clone(addresses), until });
    }

    fn answered(&self, name: &str, now: Instant) -> Option<Rc<[IpAddr]>> {
        let answers = self.answers.borrow();
        answers
            .get(name)
            .filter(|answer| now < answer.until)
            .map(|answer| Rc::clone(&answer.addresses))
    }

    fn in_hosts(&self, name: &str) -> Option<Rc<[IpAddr]>> {
        let name = Name::from_utf8(name).ok()?;
        let found = [RecordType::AAAA, RecordType::A].map(|kind| {
            let found = self.hosts.lookup_static_host(&Query::query(name.clone(), kind));
            found.map(|found| {
                found
                    .answers()
                    .iter()
                    .filter_map(|record| record.data.ip_addr())
                    .collect::<Vec<_>>()
            })
        });
        let addresses: Rc<[IpAddr]> = found.into_iter().flatten().flatten().collect();
        (!addresses.is_empty()).then_some(addresses)
    }
}

/// The resolver's answers are good until a time of this clock.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_answer_is_known_as_long_as_it_is_good_and_a_host_of_the_machine_for_ever() {
        let mut hosts = Hosts::default();
        hosts.read_hosts_conf(&b"192.0.2.1 here.test\n2001:db8::1 here.test\n"[..]).expect("sound");
        let names = KnownNames::new(Arc::new(hosts));
        let address: Rc<[IpAddr]> = Rc::from([IpAddr::from([192, 0, 2, 7])]);
        let now = now();
        names.learn("a.test".into(), &address, now + Duration::from_secs(60));
        assert_eq!(names.answered("a.test", now + Duration::from_secs(59)), Some(address));
        assert_eq!(names.answered("a.test", now + Duration::from_secs(60)), None);
        assert_eq!(names.get("here.test").expect("in the file").len(), 2);
        assert_eq!(names.get("there.test"), None);
    }

    #[test]
    fn answers_are_bounded() {
        let names = KnownNames::new(Arc::default());
        let address: Rc<[IpAddr]> = Rc::from([IpAddr::from([192, 0, 2, 7])]);
        for number in 0..=ANSWERS {
            names.learn(format!("{number}.test").into(), &address, now() + Duration::from_secs(60));
        }
        assert!(names.answers.borrow().len() <= ANSWERS);
        assert!(names.get(&format!("{ANSWERS}.test")).is_some());
    }
}
