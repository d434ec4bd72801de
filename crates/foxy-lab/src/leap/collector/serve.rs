//! Serves one connection of a proxy. Reads each request, finds its answer, sends the answer and
//! logs it.

use super::ProxyId;
use super::answer::SharedAnswer;
use super::fetch::{self, Errand};
use super::line::{CollectorLine, Source};
use super::reasons::Refusal;
use super::reply::{self, Role, SentReply};
use super::request::{self, Incoming, Refused, Request, read};
use super::shared::Shared;
use super::table::{self, Decision, Slot};
use crate::wire::http2::Frames;
use crate::wire::out::{AnswerSink, OwnAnswer};
use crate::wire::tls::entrance::{After, ConnectionService, OPENED, Within};
use crate::wire::tls::inbound::{self, Inbound};
use crate::wire::tls::{Certificates, HandshakeFailure};
use bytes::BytesMut;
use foxy_base::{Instant, clock};
use foxy_http::RequestDecoder;
use h2::RecvStream;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// The largest number of attempts to find an answer for a request. If the head of a shared answer
/// has a `Vary` that does not match the request, the Collector (common parent proxy) looks for
/// another answer.
const TRIES: usize = 4;

#[derive(Clone)]
pub struct ProxyConnection {
    pub shared: Rc<Shared>,
    pub proxy: ProxyId,
}

impl ConnectionService for ProxyConnection {
    fn certificates(&self) -> Option<&Certificates> {
        self.shared.options.certificates.as_ref()
    }

    fn limit(&self) -> Duration {
        self.shared.options.time_limit
    }

    fn no_authority(&self) {
        self.shared.refuse(Refusal::NoAuthority);
    }

    fn not_entered(&self, reason: HandshakeFailure) {
        self.shared.count(|report| report.not_entered[reason as usize] += 1);
    }

    async fn requests(
        &self,
        client: &mut Inbound,
        input: &mut BytesMut,
        within: &Within,
    ) -> io::Result<After> {
        let (shared, proxy, mut decoder) = (&self.shared, self.proxy, RequestDecoder::default());
        loop {
            let request = match read(shared, client, &mut decoder, input, within).await? {
                None => return Ok(After::Over),
                Some(Ok(Incoming::Request(request))) => request,
                Some(Ok(Incoming::Connect(to))) => {
                    client.write_all(OPENED).await?;
                    return Ok(After::Tunnel(to));
                }
                Some(Err(refused)) => return refuse(shared, client, proxy, &refused).await,
            };
            shared.answering.set(shared.answering.get() + 1);
            let answered = answer(shared, AnswerSink::Text(client), &request, proxy).await;
            shared.answering.set(shared.answering.get() - 1);
            match answered {
                Err(reason) => {
                    let refused = Refused {
                        reason,
                        method: request.head.method.clone(),
                        url: request.url.clone(),
                    };
                    return refuse(shared, client, proxy, &refused).await;
                }
                // A truncated answer without a length would look complete after a normal close. So
                // the Collector (common parent proxy) resets the connection.
                Ok(sent) if sent.reset => return inbound::reset(client).map(|()| After::Over),
                Ok(sent) if sent.broken || !sent.persistent => {
                    return client.shutdown().await.map(|()| After::Over);
                }
                Ok(_) => {}
            }
        }
    }

    async fn stream(
        &self,
        request: http::Request<RecvStream>,
        mut frames: Frames,
        within: &Within,
    ) {
        let Self { shared, proxy } = self;
        let refused = match request::of_stream(shared, request, within).await {
            Err(refused) => refused,
            Ok(request) => {
                shared.answering.set(shared.answering.get() + 1);
                let answered =
                    answer(shared, AnswerSink::Frames(&mut frames), &request, *proxy).await;
                shared.answering.set(shared.answering.get() - 1);
                // If the answer failed, the function drops `frames` here. This drop resets the
                // HTTP/2 stream, so the proxy notices the truncation.
                let Err(reason) = answered else { return };
                Refused { reason, method: request.head.method.clone(), url: request.url.clone() }
            }
        };
        let OwnAnswer { head, text } = refusal(refused.reason);
        log_refused(shared, *proxy, &refused, head.headers.wire_length() + text.len());
        let mut output = BytesMut::from(text.as_bytes());
        let sent = async {
            frames.head(&head)?;
            while !output.is_empty() {
                frames.data(&mut output).await?;
            }
            frames.end()
        };
        // If this write fails, the proxy has left and only the refusal is lost. So the result does
        // not matter.
        let _ = timeout(shared.options.time_limit, sent).await;
    }
}

async fn answer(
    shared: &Rc<Shared>,
    out: AnswerSink<'_>,
    request: &Rc<Request>,
    proxy: ProxyId,
) -> Result<SentReply, Refusal> {
    if shared.is_unasked(request) {
        shared.count(|report| report.prefetch(&request.url, proxy.0));
    }
    let (found, ready) = shared.pay_for_name(&request.to, proxy, request.arrival).await;
    shared.alarm.until(ready).await;
    let sent = match found {
        Ok(address) => {
            let (answer, role) = find(shared, request, address).await?;
            let mut sent = reply::send(shared, out, request, &answer.own, role, ready).await;
            if answer.asked_about && sent.source == Source::Origin {
                sent.source = Source::Replaced;
            }
            sent
        }
        Err(failure) => {
            shared.fail(failure);
            let own = Rc::new(SharedAnswer::new(&shared.spool));
            fetch::failed(&own, failure, Duration::ZERO, None, clock::monotonic()).await;
            reply::send(shared, out, request, &own, Role::Initiator, ready).await
        }
    };
    let origin = sent.start.origin.filter(|_| sent.source.is_fetch());
    let line = CollectorLine {
        at: clock::wall(),
        elapsed: clock::monotonic().since(request.arrival),
        proxy: shared.name_of(proxy),
        source: sent.source,
        aborted: sent.broken,
        status: sent.status,
        size: sent.bytes,
        method: request.head.method.clone(),
        url: request.url.clone(),
        origin: origin.map(|origin| origin.to_string()),
        media: sent.start.head.headers.get_str("content-type").map(str::to_owned),
    };
    shared.log(&line, proxy);
    Ok(sent)
}

struct Found {
    own: Rc<SharedAnswer>,
    asked_about: bool,
}

async fn find(
    shared: &Rc<Shared>,
    request: &Rc<Request>,
    address: IpAddr,
) -> Result<(Found, Role), Refusal> {
    for _ in 0..TRIES {
        let now = clock::monotonic();
        let make = || Rc::new(SharedAnswer::new(&shared.spool));
        let fields = &request.head.headers;
        let decision = shared.table.borrow_mut().find(&request.asked, fields, now, make);
        let (slot, own, older) = match decision {
            Decision::Answer(own) => {
                let known = own.see(|progress| progress.end.is_some());
                let start = own.until(|progress| progress.start.clone()).await;
                if table::depends_alike(&start.depends, fields) {
                    let role = if known { Role::Later } else { Role::Joined };
                    return Ok((Found { own, asked_about: false }, role));
                }
                continue;
            }
            Decision::Fetch(slot, own) => (slot, own, None),
            Decision::Validate(slot, own, older) => (slot, own, Some(older)),
        };
        let turn = turn(shared, slot, now)?;
        let found = Found { own: Rc::clone(&own), asked_about: older.is_some() };
        let errand =
            Errand { slot, answer: own, request: Rc::clone(request), address, turn, older };
        tokio::task::spawn_local(fetch::run(Rc::clone(shared), errand));
        return Ok((found, Role::Initiator));
    }
    Err(Refusal::TooManyFetches)
}

/// Returns how long the fetch must wait under the rate limit. If there are too many fetches,
/// returns the reason and removes the new slot (entry) from the table of answers.
fn turn(shared: &Shared, slot: Slot, now: Instant) -> Result<Duration, Refusal> {
    let turn = if shared.fetches.get() < shared.options.most_fetches {
        shared.pacer.borrow_mut().turn(shared.options.reach, now)
    } else {
        Err(Refusal::TooManyFetches)
    };
    match turn {
        Ok(_) => {
            shared.fetches.set(shared.fetches.get() + 1);
            shared.count(|report| report.fetches += 1);
        }
        Err(_) => shared.table.borrow_mut().remove(slot),
    }
    turn
}

async fn refuse(
    shared: &Shared,
    client: &mut Inbound,
    proxy: ProxyId,
    refused: &Refused,
) -> io::Result<After> {
    let output = refusal(refused.reason).to_bytes();
    log_refused(shared, proxy, refused, output.len());
    timeout(shared.options.time_limit, client.write_all(&output)).await??;
    client.shutdown().await.map(|()| After::Over)
}

fn log_refused(shared: &Shared, proxy: ProxyId, refused: &Refused, size: usize) {
    shared.refuse(refused.reason);
    let line = CollectorLine {
        at: clock::wall(),
        elapsed: Duration::ZERO,
        proxy: shared.name_of(proxy),
        source: Source::Refused,
        aborted: false,
        status: refused.reason.status(),
        size: size as u64,
        method: refused.method.clone(),
        url: refused.url.clone(),
        origin: None,
        media: Some("text/plain".into()),
    };
    shared.log(&line, proxy);
}

pub fn refusal(reason: Refusal) -> OwnAnswer {
    OwnAnswer::new(reason.status(), reason.text())
}
