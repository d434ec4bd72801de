//! One client's connection: its requests read whole one after the other, each asked on every path,
//! and answered.

use super::admission::{self, admit};
use super::send::{self, AfterAnswer, AnswerTarget};
use super::{FrontRefusal, Hall, Held, stream};
use crate::leap::Asked;
use crate::leap::exchange::relay::{Piece, tap};
use crate::leap::multiplier::group;
use crate::wire::REQUEST_ID;
use crate::wire::key::Destination;
use crate::wire::out::Out;
use crate::wire::patience::Patience;
use crate::wire::streams::Frames;
use crate::wire::tls::entrance::{self, After, House, OPENED, Within};
use crate::wire::tls::inbound::{self, Inbound};
use crate::wire::tls::{Certificates, NotEntered};
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

pub struct Taken<P> {
    pub asked: Asked,
    pub client: AnswerTarget,
    pub place: P,
}

enum Came<P> {
    Request(Taken<P>),
    Connect(Destination),
}

#[derive(Clone)]
pub struct Guest {
    pub hall: Rc<Hall>,
    pub peer: IpAddr,
}

impl House for Guest {
    fn certificates(&self) -> Option<&Certificates> {
        self.hall.front.certificates.as_ref()
    }

    fn limit(&self) -> Duration {
        IDLE.min(self.hall.means.run.time_limit)
    }

    fn no_authority(&self) {
        self.hall.refuse(FrontRefusal::NoAuthority);
    }

    fn not_entered(&self, reason: NotEntered) {
        self.hall.count(|counts| counts.not_entered[reason as usize] += 1);
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
        stream::serve(self, request, frames, within).await;
    }
}

async fn requests(
    Guest { hall, peer }: &Guest,
    stream: &mut Inbound,
    input: &mut BytesMut,
    within: &Within,
) -> io::Result<After> {
    let mut decoder = RequestDecoder::default();
    let place = |hall: &Rc<Hall>| Held::new(hall, |hall| &hall.in_flight);
    loop {
        let taken = match read(hall, stream, (*peer, within), (&mut decoder, input), place).await? {
            None => return Ok(After::Over),
            Some(Ok(Came::Request(taken))) => taken,
            Some(Ok(Came::Connect(to))) => {
                stream.write_all(OPENED).await?;
                return Ok(After::Tunnel(to));
            }
            Some(Err(reason)) => return refuse(hall, stream, reason).await,
        };
        if let Err(reason) = turn(hall).await {
            return refuse(hall, stream, reason).await;
        }
        let answering = Held::new(hall, |hall| &hall.answering);
        let (client, pieces) = begin(hall, taken);
        let next = send::answer(hall, Out::Text(stream), &client, pieces).await;
        drop(answering);
        match next {
            AfterAnswer::Request => {}
            AfterAnswer::Close => return stream.shutdown().await.map(|()| After::Over),
            // What ends with the connection would look whole if that ended as usual.
            AfterAnswer::Reset => return inbound::reset(stream).map(|()| After::Over),
        }
    }
}

pub async fn turn(hall: &Hall) -> Result<(), FrontRefusal> {
    let turn = hall.pacer.borrow_mut().turn(hall.front.reach, clock::monotonic());
    match turn {
        Ok(wait) if !wait.is_zero() => sleep(wait).await,
        Ok(_) => {}
        Err(_) => return Err(FrontRefusal::RateLimited),
    }
    Ok(())
}

pub fn begin<P: 'static>(hall: &Hall, taken: Taken<P>) -> (AnswerTarget, Receiver<Piece>) {
    let Taken { asked, mut client, place } = taken;
    let (tap, pieces) = tap(hall.means.run.time_limit);
    let number = hall.begun.get();
    hall.begun.set(number + 1);
    client.asked_as = hall.means.run.numbers.map(|numbers| numbers.copy(number, hall.path));
    let (means, ends, path) = (Rc::clone(&hall.means), hall.ends.clone(), hall.path);
    tokio::task::spawn_local(async move {
        let group = group::ask(means, (asked, number), Some((path, tap))).await;
        // The receiver lives until every group has come.
        let _ = ends.send(group);
        drop(place);
    });
    (client, pieces)
}

/// Reads one request; `None` at the end of the connection or after the idle timeout. The request
/// takes its place in flight with its head, so bodies in memory are bounded.
async fn read<P>(
    hall: &Rc<Hall>,
    stream: &mut Inbound,
    (peer, within): (IpAddr, &Within),
    (decoder, input): (&mut RequestDecoder, &mut BytesMut),
    place: impl Fn(&Rc<Hall>) -> P,
) -> io::Result<Option<Result<Came<P>, FrontRefusal>>> {
    let (mut begun, mut body): (Option<(Taken<P>, bool)>, _) = (None, BytesMut::new());
    let mut patience = Patience::new(IDLE, IDLE.min(hall.means.run.time_limit));
    loop {
        match decoder.next(input) {
            Err(_) => return Ok(Some(Err(FrontRefusal::NotHttp))),
            Ok(Some(RequestEvent::Head(head, _))) if head.method == Method::Connect => {
                let to = entrance::tunnel(hall.front.certificates.as_ref(), &head, within);
                return Ok(Some(to.map(Came::Connect).map_err(FrontRefusal::from)));
            }
            Ok(Some(RequestEvent::Head(_, BodyLength::Length(length))))
                if length > LARGEST_BODY as u64 =>
            {
                return Ok(Some(Err(FrontRefusal::BodyTooLarge)));
            }
            Ok(Some(RequestEvent::Head(head, length))) => {
                let asked = match admit(hall, &head, peer, within).await {
                    Ok(asked) => asked,
                    Err(reason) => return Ok(Some(Err(reason))),
                };
                if expects_continue(&head) {
                    stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                    stream.flush().await?;
                }
                let taken = Taken { asked, client: client(&head), place: place(hall) };
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
                return Ok(Some(Ok(Came::Request(taken))));
            }
            Ok(None) => {
                if !patience.read(stream, (input, begun.is_some()), READ).await {
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

async fn refuse(hall: &Hall, stream: &mut Inbound, reason: FrontRefusal) -> io::Result<After> {
    hall.refuse(reason);
    timeout(hall.means.run.time_limit, stream.write_all(&send::refusal(reason))).await??;
    stream.shutdown().await?;
    // What the client still sends is read for a moment, so that the end of the connection does not
    // take the answer with it.
    let mut rest = [0; 4096];
    let drain = async { while matches!(stream.read(&mut rest).await, Ok(1..)) {} };
    // A client that goes on sending loses the answer, not more.
    let _ = timeout(Duration::from_millis(200), drain).await;
    Ok(After::Over)
}
