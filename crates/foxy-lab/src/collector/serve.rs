//! One connection of a proxy: reads requests whole, finds what each is answered by, has it sent, and logs it.

use super::answer::Answer;
use super::fetch::{self, Errand};
use super::key::{Asked, Destination};
use super::line::{Line, Source};
use super::reasons::Refusal;
use super::reply::{self, Role, Sent};
use super::shared::Shared;
use super::table::{self, Decision, Slot};
use super::{LARGEST_REQUEST, ProxyId};
use bytes::{Bytes, BytesMut};
use foxy_base::{Instant, clock};
use foxy_http::{Method, RequestDecoder, RequestEvent, RequestHead, ResponseHead, encode, expects_continue};
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use xxhash_rust::xxh3::Xxh3;

/// Bytes asked of a proxy at a time.
const READ: usize = 16 << 10;
/// How often a request whose answer turns out to be another's is tried again.
const TRIES: usize = 4;

/// A request that has come whole.
pub struct Request {
    pub head: RequestHead,
    pub has_body: bool,
    pub body: Bytes,
    pub to: Destination,
    pub url: String,
    pub asked: Asked,
    /// When it was whole: what it pays counts from then.
    pub arrival: Instant,
}

/// A request that is refused, as far as it is known.
struct Refused {
    reason: Refusal,
    method: Method,
    url: String,
}

impl Refused {
    fn unread(reason: Refusal) -> Self {
        Self { reason, method: Method::Get, url: String::new() }
    }
}

/// Serves the connection to its end.
pub async fn serve(shared: Rc<Shared>, mut client: TcpStream, proxy: ProxyId) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (mut decoder, mut input) = (RequestDecoder::default(), BytesMut::new());
    loop {
        let request = match read(&shared, &mut client, &mut decoder, &mut input).await? {
            None => return Ok(()),
            Some(Ok(request)) => Rc::new(request),
            Some(Err(refused)) => return refuse(&shared, &mut client, proxy, &refused).await,
        };
        shared.answering.set(shared.answering.get() + 1);
        let answered = answer(&shared, &mut client, &request, proxy).await;
        shared.answering.set(shared.answering.get() - 1);
        match answered {
            Err(reason) => {
                let refused =
                    Refused { reason, method: request.head.method.clone(), url: request.url.clone() };
                return refuse(&shared, &mut client, proxy, &refused).await;
            }
            // What ends with the connection would look whole if that ended as usual.
            Ok(sent) if sent.reset => return client.set_zero_linger(),
            Ok(sent) if sent.broken || !sent.persistent => return client.shutdown().await,
            Ok(_) => {}
        }
    }
}

/// Reads one request; `None` at the end of the connection, or when nothing comes for too long.
async fn read(
    shared: &Shared,
    client: &mut TcpStream,
    decoder: &mut RequestDecoder,
    input: &mut BytesMut,
) -> io::Result<Option<Result<Request, Refused>>> {
    let (mut head, mut body, mut digest) = (None, BytesMut::new(), Xxh3::new());
    loop {
        match decoder.next(input) {
            Err(_) => return Ok(Some(Err(Refused::unread(Refusal::NotHttp)))),
            Ok(Some(RequestEvent::Head(found, length))) => {
                if expects_continue(&found) {
                    client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                }
                head = Some((found, length));
            }
            Ok(Some(RequestEvent::Body(data))) => {
                if body.len() + data.len() > LARGEST_REQUEST {
                    return Ok(Some(Err(Refused::unread(Refusal::BodyTooLarge))));
                }
                digest.update(&data);
                body.extend_from_slice(&data);
            }
            Ok(Some(RequestEvent::Trailers(_))) => {}
            Ok(Some(RequestEvent::End)) => {
                let Some((head, length)) = head.take() else { continue };
                let has_body = length != foxy_http::BodyLength::None;
                return Ok(Some(accept(shared, head, has_body, body.freeze(), digest.digest128())));
            }
            Ok(None) => {
                input.reserve(READ);
                let read = timeout(shared.options.time_limit, client.read_buf(input)).await;
                if !matches!(read, Ok(Ok(1..))) {
                    return Ok(None);
                }
            }
        }
    }
}

/// Looks whether a request may be asked, and says what it is.
fn accept(
    shared: &Shared,
    head: RequestHead,
    has_body: bool,
    body: Bytes,
    digest: u128,
) -> Result<Request, Refused> {
    let raw = || String::from_utf8_lossy(head.target.raw()).into_owned();
    let refused = |reason| Refused { reason, method: head.method.clone(), url: raw() };
    let named = Destination::of(&head).ok_or_else(|| refused(Refusal::NotPlainHttp))?;
    // A reverse proxy that names its parent as the host means what the parent has behind it.
    let meant = shared.options.origin.filter(|_| shared.is_own(&named)).map(Destination::at);
    let to = meant.unwrap_or(named);
    shared.options.reach.allows(&head.method).map_err(refused)?;
    if head.headers.tokens("via").any(|via| via.starts_with(shared.via.as_bytes())) || shared.is_own(&to) {
        return Err(refused(Refusal::Loop));
    }
    let (asked, url) = (Asked::new(&head, &to, digest), to.url(&head));
    Ok(Request { head, has_body, body, to, url, asked, arrival: clock::monotonic() })
}

/// Answers, and logs it.
async fn answer(
    shared: &Rc<Shared>,
    client: &mut TcpStream,
    request: &Rc<Request>,
    proxy: ProxyId,
) -> Result<Sent, Refusal> {
    let (found, ready) = shared.pay_for_name(&request.to, proxy, request.arrival).await;
    shared.alarm.until(ready).await;
    let sent = match found {
        Ok(address) => {
            let (answer, role) = find(shared, request, address).await?;
            let mut sent = reply::send(shared, client, request, &answer.own, (role, ready)).await;
            if answer.asked_about && sent.source == Source::Origin {
                sent.source = Source::Replaced;
            }
            sent
        }
        Err(failure) => {
            shared.fail(failure);
            let own = Rc::new(Answer::new(&shared.spool));
            fetch::failed(&own, failure, Duration::ZERO, None, clock::monotonic()).await;
            reply::send(shared, client, request, &own, (Role::Initiator, ready)).await
        }
    };
    let origin = sent.start.origin.filter(|_| sent.source.is_fetch());
    let line = Line {
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

/// An answer, and whether the origin was asked about an older one for it.
struct Found {
    own: Rc<Answer>,
    asked_about: bool,
}

/// Finds what a request is answered by, and has the origin asked where nothing is at hand.
async fn find(shared: &Rc<Shared>, request: &Rc<Request>, address: IpAddr) -> Result<(Found, Role), Refusal> {
    for _ in 0..TRIES {
        let now = clock::monotonic();
        let make = || Rc::new(Answer::new(&shared.spool));
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
        let errand = Errand { slot, answer: own, request: Rc::clone(request), address, turn, older };
        tokio::task::spawn_local(fetch::run(Rc::clone(shared), errand));
        return Ok((found, Role::Initiator));
    }
    Err(Refusal::TooManyFetches)
}

/// Whether the origin may be asked now, and when; the slot is given back if not.
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

/// Says why a request is refused, and ends the connection.
async fn refuse(
    shared: &Shared,
    client: &mut TcpStream,
    proxy: ProxyId,
    refused: &Refused,
) -> io::Result<()> {
    shared.refuse(refused.reason);
    let output = refusal(refused.reason);
    let line = Line {
        at: clock::wall(),
        elapsed: Duration::ZERO,
        proxy: shared.name_of(proxy),
        source: Source::Refused,
        aborted: false,
        status: refused.reason.status(),
        size: output.len() as u64,
        method: refused.method.clone(),
        url: refused.url.clone(),
        origin: None,
        media: Some("text/plain".into()),
    };
    shared.log(&line, proxy);
    timeout(shared.options.time_limit, client.write_all(&output)).await??;
    client.shutdown().await
}

/// The answer that says why there is none.
pub fn refusal(reason: Refusal) -> BytesMut {
    let text = format!("foxy collector: {}\n", reason.description());
    let mut head = ResponseHead::new(reason.status());
    head.headers.append("Content-Type", "text/plain");
    head.headers.append("Content-Length", text.len().to_string());
    head.headers.append("Cache-Control", "no-store");
    head.headers.append("Connection", "close");
    let mut output = BytesMut::new();
    encode::response_head(&head, &mut output);
    output.extend_from_slice(text.as_bytes());
    output
}
