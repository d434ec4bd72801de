//! Collects messages about destinations that the proxy refused. Each pair of cause and host gives
//! one message. Workers only add messages; a task of `served` prints them.

use foxy_proxy::request::access::{AccessRecord, AccessSink, Finished};
use foxy_proxy::request::cache_status::CacheStatus;
use foxy_proxy::upstream::DestinationRefusal;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Largest number of messages that wait to be printed. While this many wait, new messages are
/// dropped.
const MAX_WAITING_MESSAGES: usize = 4;
/// Number of pairs of cause and host that foxy remembers as reported. When the memory is full, foxy
/// forgets all pairs, so a pair may be reported again.
const MAX_REMEMBERED: usize = 256;
const MAX_HOST_CHARACTERS: usize = 100;

#[derive(Debug, Default)]
pub struct RefusedDestinations {
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    reported: HashSet<(DestinationRefusal, String)>,
    waiting: Vec<String>,
}

impl AccessSink for RefusedDestinations {
    fn record(&self, record: &AccessRecord<'_>) {
        if let CacheStatus::Error(reason) = record.outcome
            && let Some(refusal) = reason.refused_destination()
        {
            self.note(refusal, record);
        }
    }

    fn wants(&self, finished: &Finished) -> bool {
        let CacheStatus::Error(reason) = finished.status else { return false };
        reason.refused_destination().is_some()
    }
}

impl RefusedDestinations {
    /// Removes all waiting messages, and returns them for printing.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.noted().waiting)
    }

    fn note(&self, refusal: DestinationRefusal, record: &AccessRecord<'_>) {
        let mut noted = self.noted();
        let host = printable(record.authority());
        if noted.waiting.len() >= MAX_WAITING_MESSAGES
            || noted.reported.contains(&(refusal, host.clone()))
        {
            return;
        }
        let mut text = format!(
            "foxy: 403 for {}, which asked for {host}: {}",
            record.client.ip(),
            refusal.description()
        );
        if let Some(remedy) = refusal.remedy() {
            text.push_str("; ");
            text.push_str(remedy);
        }
        noted.waiting.push(text);
        if noted.reported.len() >= MAX_REMEMBERED {
            noted.reported.clear();
        }
        noted.reported.insert((refusal, host));
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the host, shortened, with `?` in place of each byte that is unsafe on a terminal.
fn printable(host: &[u8]) -> String {
    let shown = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' };
    host.iter().take(MAX_HOST_CHARACTERS).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::{Instant, WallTime};
    use foxy_proxy::core::metrics::request_metrics::RequestOutcome;
    use foxy_proxy::request::reason::ErrorReason;
    use foxy_proxy::upstream::{ConnectError, UpstreamError};
    use std::time::Duration;

    fn record(url: &[u8], refusal: DestinationRefusal) -> AccessRecord<'_> {
        let error = UpstreamError::Connect(ConnectError::Forbidden(refusal));
        AccessRecord {
            end: WallTime(0),
            started: Instant(0),
            elapsed: Duration::ZERO,
            client: ([192, 0, 2, 1], 1).into(),
            outcome: CacheStatus::Error(ErrorReason::Upstream(error)),
            cut: None,
            status: 403,
            bytes: 0,
            body_bytes: 0,
            method: b"GET",
            site: None,
            url,
            version: "HTTP/1.1",
            request_outcome: RequestOutcome::Refused,
            parent: None,
            node: None,
            user: None,
            server: None,
            rules: None,
            content_type: None,
            referer: None,
            user_agent: None,
            fields: None,
            id: "",
            origin: None,
        }
    }

    #[test]
    fn each_cause_and_host_is_reported_once_with_its_setting() {
        let refused = RefusedDestinations::default();
        let private = record(b"http://10.0.0.1:81/x", DestinationRefusal::Private);
        refused.record(&private);
        refused.record(&record(b"http://10.0.0.1:81/y", DestinationRefusal::Private));
        refused.record(&record(b"a.test:25", DestinationRefusal::ConnectPort));
        let said = [
            "foxy: 403 for 192.0.2.1, which asked for 10.0.0.1:81: the host resolves to a private \
             address; \
             to allow it, add the address's block to allow-destination (--allow-destination CIDR)",
            "foxy: 403 for 192.0.2.1, which asked for a.test:25: CONNECT to this port is not \
             allowed; \
             to allow it, add the port to connect-ports (--connect-port PORT)",
        ];
        assert_eq!(refused.take(), said);
        refused.record(&private);
        assert!(refused.take().is_empty());
    }

    #[test]
    fn a_flood_of_hosts_stays_within_bounds() {
        let refused = RefusedDestinations::default();
        for number in 0..1000 {
            let url = format!("http://{number}.test\x1b[2J/");
            refused.record(&record(url.as_bytes(), DestinationRefusal::Private));
            if number % 2 == 0 {
                let said = refused.take();
                assert!(
                    said.len() <= MAX_WAITING_MESSAGES && !said.concat().contains('\x1b'),
                    "{said:?}"
                );
            }
        }
        assert!(refused.noted().reported.len() <= MAX_REMEMBERED);
    }
}
