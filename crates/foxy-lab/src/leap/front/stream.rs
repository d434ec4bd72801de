//! A client's request on a stream of HTTP/2, and its answer.

use super::admission::{admit, with_body};
use super::connection::{Guest, LARGEST_BODY, Taken, begin, client, turn};
use super::{FrontRefusal, Hall, Held, send};
use crate::wire::out::Out;
use crate::wire::streams::{self, Frames, NotWhole};
use crate::wire::tls::entrance::Within;
use foxy_http::{BodyLength, Method};
use h2::RecvStream;
use std::rc::Rc;

pub async fn serve(
    guest: &Guest,
    request: http::Request<RecvStream>,
    mut frames: Frames,
    within: &Within,
) {
    let hall = &guest.hall;
    let place = |hall: &Rc<Hall>| Held::new(hall, |hall| &hall.in_flight);
    let asked = match take(guest, request, within, place).await {
        Ok(taken) => turn(hall).await.map(|()| taken),
        Err(reason) => Err(reason),
    };
    match asked {
        Ok(taken) => {
            let answering = Held::new(hall, |hall| &hall.answering);
            let (client, pieces) = begin(hall, taken);
            // What breaks off is reset with the stream, which goes with its frames.
            let _ = send::answer(hall, Out::Frames(&mut frames), &client, pieces).await;
            drop(answering);
        }
        Err(reason) => {
            hall.refuse(reason);
            send::refuse(hall, Out::Frames(&mut frames), reason).await;
        }
    }
}

/// Reads the whole request. It takes its place in flight with its head.
async fn take<P>(
    Guest { hall, peer }: &Guest,
    request: http::Request<RecvStream>,
    within: &Within,
    place: impl Fn(&Rc<Hall>) -> P,
) -> Result<Taken<P>, FrontRefusal> {
    let (head, length) = streams::head_of(&request).map_err(|_| FrontRefusal::NotHttp)?;
    if head.method == Method::Connect {
        return Err(FrontRefusal::TunnelWithin);
    }
    let asked = admit(hall, &head, *peer, within).await?;
    let taken = Taken { asked, client: client(&head), place: place(hall) };
    let body = streams::whole(request.into_body(), LARGEST_BODY, hall.means.run.time_limit).await;
    let body = body.map_err(|reason| match reason {
        NotWhole::TooLarge => FrontRefusal::BodyTooLarge,
        NotWhole::Broken => FrontRefusal::NotHttp,
    })?;
    let body = (length != BodyLength::None).then_some(body);
    Ok(Taken { asked: with_body(taken.asked, body), ..taken })
}
