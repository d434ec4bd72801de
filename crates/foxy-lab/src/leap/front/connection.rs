//! Serves a connection or an HTTP/2 stream of a client of the Multiplier (LEAP's request copier).
//! Reads each request whole, sends it on every path (proxies and origin) and returns one answer.

use super::admission::admit;
use super::send::{AfterAnswer, AnswerTarget};
use super::{Counted, FrontRefusal, FrontState, admission, send};
use crate::leap::Asked;
use crate::leap::exchange::relay::{Piece, tap};
use crate::leap::multiplier::group;
use crate::wire::http2::{Frames, NotWhole};
use crate::wire::key::Destination;
use crate::wire::out::AnswerSink;
use crate::wire::patience::RequestTimeout;
use crate::wire::tls::entrance::{After, ConnectionService, OPENED, Within};
use crate::wire::tls::inbound::Inbound;
use crate::wire::tls::{Certificates, HandshakeFailure, entrance, inbound};
use crate::wire::{REQUEST_ID, http2};
use bytes::{Bytes, BytesMut};
use foxy_base::clock;
use foxy_http::{
    BodyLength, Method, Persistence, RequestDecoder, RequestEvent, RequestHead, expects_continue,
};
use h2::RecvStream;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::Receiver;
use tokio::time::{sleep, timeout};

const READ: usize = 16 << 10;
pub const LARGEST_BODY: usize = 1 << 20;
const IDLE: Duration = Duration::from_secs(60);

pub struct AdmittedRequest<P> {
    pub asked: Asked,
    pub client: AnswerTarget,
    pub place: P,
}

enum ClientInput<P> {
    Request(AdmittedRequest<P>),
    Connect(Destination),
}

#[derive(Clone)]
pub struct FrontConnection {
    pub state: Rc<FrontState>,
    pub peer: IpAddr,
}

impl ConnectionService for FrontConnection {
    fn certificates(&self) -> Option<&Certificates> {
        self.state.front.certificates.as_ref()
    }

    fn limit(&self) -> Duration {
        IDLE.min(self.state.context.run.time_limit)
    }

    fn no_authority(&self) {
        self.state.refuse(FrontRefusal::NoAuthority);
    }

    fn not_entered(&self, reason: HandshakeFailure) {
        self.state.count(|counts| counts.not_entered[reason as usize] += 1);
    }

    async fn requests(
        &self,
        stream: &mut Inbound,
        input: &mut BytesMut,
        within: &Within,
    ) -> io::Result<After> {
        requests(self, stream, input, within).await
    }

    async fn stream(&self, request: http::Request<RecvStream>, frames: Frames, within: &Within) {
        serve_stream(self, request, frames, within).await;
    }
}

async fn requests(
    guest: &FrontConnection,
    stream: &mut Inbound,
    input: &mut BytesMut,
    within: &Within,
) -> io::Result<After> {
    let (state, mut decoder) = (&guest.state, RequestDecoder::default());
    let place = |state: &Rc<FrontState>| Counted::new(state, |state| &state.in_flight);
    loop {
        let taken = match read(guest, stream, within, &mut decoder, input, place).await? {
            None => return Ok(After::Over),
            Some(Ok(ClientInput::Request(taken))) => taken,
            Some(Ok(ClientInput::Connect(to))) => {
                stream.write_all(OPENED).await?;
                return Ok(After::Tunnel(to));
            }
            Some(Err(reason)) => return refuse(state, stream, reason).await,
        };
        if let Err(reason) = turn(state).await {
            return refuse(state, stream, reason).await;
        }
        let answering = Counted::new(state, |state| &state.answering);
        let (client, pieces) = begin(state, taken);
        let next = send::answer(state, AnswerSink::Text(stream), &client, pieces).await;
        drop(answering);
        match next {
            AfterAnswer::Request => {}
            AfterAnswer::Close => return stream.shutdown().await.map(|()| After::Over),
            // A truncated answer without a length would look complete after a normal close. So this
            // code resets the connection.
            AfterAnswer::Reset => return inbound::reset(stream).map(|()| After::Over),
        }
    }
}

pub async fn turn(state: &FrontState) -> Result<(), FrontRefusal> {
    let turn = state.pacer.borrow_mut().turn(state.front.reach, clock::monotonic());
    match turn {
        Ok(wait) if !wait.is_zero() => sleep(wait).await,
        Ok(_) => {}
        Err(_) => return Err(FrontRefusal::RateLimited),
    }
    Ok(())
}

pub fn begin<P: 'static>(
    state: &FrontState,
    taken: AdmittedRequest<P>,
) -> (AnswerTarget, Receiver<Piece>) {
    let AdmittedRequest { asked, mut client, place } = taken;
    let (tap, pieces) = tap(state.context.run.time_limit);
    let number = state.begun.get();
    state.begun.set(number + 1);
    client.asked_as = state.context.run.numbers.map(|numbers| numbers.copy(number, state.path));
    let (context, ends, path) = (Rc::clone(&state.context), state.ends.clone(), state.path);
    tokio::task::spawn_local(async move {
        let group = group::ask(context, asked, number, Some((path, tap))).await;
        // This send cannot fail. The receiver lives until the results of all requests have arrived.
        let _ = ends.send(group);
        drop(place);
    });
    (client, pieces)
}

/// Reads one request. Returns `None` at the end of the connection or after the idle timeout. The
/// request counts as in flight as soon as its head is complete. So the limit on requests in flight
/// also limits the memory for bodies.
async fn read<P>(
    FrontConnection { state, peer }: &FrontConnection,
    stream: &mut Inbound,
    within: &Within,
    decoder: &mut RequestDecoder,
    input: &mut BytesMut,
    place: impl Fn(&Rc<FrontState>) -> P,
) -> io::Result<Option<Result<ClientInput<P>, FrontRefusal>>> {
    let (mut begun, mut body): (Option<(AdmittedRequest<P>, bool)>, _) = (None, BytesMut::new());
    let mut patience = RequestTimeout::new(IDLE, IDLE.min(state.context.run.time_limit));
    loop {
        match decoder.next(input) {
            Err(_) => return Ok(Some(Err(FrontRefusal::NotHttp))),
            Ok(Some(RequestEvent::Head(head, _))) if head.method == Method::Connect => {
                let to = entrance::tunnel(state.front.certificates.as_ref(), &head, within);
                return Ok(Some(to.map(ClientInput::Connect).map_err(FrontRefusal::from)));
            }
            Ok(Some(RequestEvent::Head(_, BodyLength::Length(length))))
                if length > LARGEST_BODY as u64 =>
            {
                return Ok(Some(Err(FrontRefusal::BodyTooLarge)));
            }
            Ok(Some(RequestEvent::Head(head, length))) => {
                let asked = match admit(state, &head, *peer, within).await {
                    Ok(asked) => asked,
                    Err(reason) => return Ok(Some(Err(reason))),
                };
                if expects_continue(&head) {
                    stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                    stream.flush().await?;
                }
                let taken = AdmittedRequest { asked, client: client(&head), place: place(state) };
                begun = Some((taken, length != BodyLength::None));
            }
            Ok(Some(RequestEvent::Body(data))) => {
                if body.len() + data.len() > LARGEST_BODY {
                    return Ok(Some(Err(FrontRefusal::BodyTooLarge)));
                }
                body.extend_from_slice(&data);
            }
            Ok(Some(RequestEvent::Trailers(_))) => {}
            Ok(Some(RequestEvent::End)) => {
                let Some((mut taken, has_body)) = begun.take() else { continue };
                let body = has_body.then(|| body.freeze());
                taken.asked = admission::with_body(taken.asked, body);
                return Ok(Some(Ok(ClientInput::Request(taken))));
            }
            Ok(None) => {
                if !patience.read(stream, input, begun.is_some(), READ).await {
                    return Ok(None);
                }
            }
        }
    }
}

pub fn client(head: &RequestHead) -> AnswerTarget {
    AnswerTarget {
        version: head.version,
        persistent: Persistence::of(head.version, &head.headers) == Persistence::KeepAlive,
        number: head.headers.get(REQUEST_ID).map(Bytes::copy_from_slice),
        asked_as: None,
    }
}

async fn refuse(
    state: &FrontState,
    stream: &mut Inbound,
    reason: FrontRefusal,
) -> io::Result<After> {
    state.refuse(reason);
    timeout(state.context.run.time_limit, stream.write_all(&send::refusal(reason).to_bytes()))
        .await??;
    stream.shutdown().await?;
    // Reads the client's remaining bytes for a moment. A close with unread bytes would reset the
    // connection, and the client could lose the refusal.
    let mut rest = [0; 4096];
    let drain = async { while matches!(stream.read(&mut rest).await, Ok(1..)) {} };
    // A timeout does not matter. A client that still sends after 200 ms may lose the refusal.
    let _ = timeout(Duration::from_millis(200), drain).await;
    Ok(After::Over)
}

async fn serve_stream(
    guest: &FrontConnection,
    request: http::Request<RecvStream>,
    mut frames: Frames,
    within: &Within,
) {
    let state = &guest.state;
    let place = |state: &Rc<FrontState>| Counted::new(state, |state| &state.in_flight);
    let asked = match read_stream(guest, request, within, place).await {
        Ok(taken) => turn(state).await.map(|()| taken),
        Err(reason) => Err(reason),
    };
    match asked {
        Ok(taken) => {
            let answering = Counted::new(state, |state| &state.answering);
            let (client, pieces) = begin(state, taken);
            // After a truncated answer, this function drops `frames` at its end. The drop resets
            // the HTTP/2 stream, so the client notices the truncation.
            let _ = send::answer(state, AnswerSink::Frames(&mut frames), &client, pieces).await;
            drop(answering);
        }
        Err(reason) => {
            state.refuse(reason);
            send::refuse(state, AnswerSink::Frames(&mut frames), reason).await;
        }
    }
}

/// Reads the whole request of an HTTP/2 stream. The request counts as in flight as soon as its head
/// is complete.
async fn read_stream<P>(
    FrontConnection { state, peer }: &FrontConnection,
    request: http::Request<RecvStream>,
    within: &Within,
    place: impl Fn(&Rc<FrontState>) -> P,
) -> Result<AdmittedRequest<P>, FrontRefusal> {
    let (head, length) = http2::request_head(&request).map_err(|_| FrontRefusal::NotHttp)?;
    if head.method == Method::Connect {
        return Err(FrontRefusal::TunnelWithin);
    }
    let asked = admit(state, &head, *peer, within).await?;
    let taken = AdmittedRequest { asked, client: client(&head), place: place(state) };
    let body = http2::whole(request.into_body(), LARGEST_BODY, state.context.run.time_limit).await;
    let body = body.map_err(|reason| match reason {
        NotWhole::TooLarge => FrontRefusal::BodyTooLarge,
        NotWhole::Broken => FrontRefusal::NotHttp,
    })?;
    let body = (length != BodyLength::None).then_some(body);
    Ok(AdmittedRequest { asked: admission::with_body(taken.asked, body), ..taken })
}
