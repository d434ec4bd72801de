//! Sends a copy of a request over HTTP/2 (RFC 9113). A connection carries one request at a time.

use super::kept::{Carriage, may_keep};
use super::{Copying, ReadingExchange};
use crate::leap::PathFailure;
use crate::wire::REQUEST_ID;
use crate::wire::http2::fields_of;
use crate::wire::http2::{self, Http2Connection};
use foxy_base::clock;

pub async fn exchange(
    reading: &mut ReadingExchange,
    copying: Copying<'_>,
) -> Result<(), PathFailure> {
    let Copying { context, asked, .. } = copying;
    let keep = may_keep(&context.run, asked);
    let mut kept = keep.then(|| context.kept.take_frames(copying)).flatten();
    loop {
        let mut stream = match kept.take() {
            Some(stream) => {
                reading.is_kept();
                stream
            }
            None => {
                let channel = reading.connect(copying).await?;
                reading.within(Http2Connection::open(channel)).await?.map_err(unanswered)?
            }
        };
        match converse(reading, &mut stream, copying).await {
            // The server closed the reused connection before it processed the request. So LEAP may
            // repeat the request on a new connection.
            Err(PathFailure::Unanswered)
                if reading.carriage == Carriage::Kept && reading.first.is_none() =>
            {
                reading.carriage = Carriage::KeptThenNew;
            }
            Ok(()) if keep => {
                context.kept.put_frames(copying, stream);
                return Ok(());
            }
            ended => return ended,
        }
    }
}

fn unanswered(error: h2::Error) -> PathFailure {
    failure(&error, PathFailure::Unanswered)
}

async fn converse(
    reading: &mut ReadingExchange,
    stream: &mut Http2Connection,
    copying: Copying<'_>,
) -> Result<(), PathFailure> {
    let message = &copying.asked.message;
    let request = head(copying).ok_or(PathFailure::NotHttp)?;
    let response = stream.ask(request, message.body.clone()).map_err(unanswered)?;
    let (parts, mut body) = reading.within(response).await?.map_err(unanswered)?.into_parts();
    reading.first = Some(clock::monotonic());
    let (head, length) =
        http2::response_head(&message.method, &parts).ok_or(PathFailure::NotHttp)?;
    reading.begin(head, length).await;
    while let Some(data) = reading.within(body.data()).await? {
        let data = data.map_err(|error| failure(&error, PathFailure::Closed))?;
        let count = data.len();
        reading.add(data).await;
        // The call fails only if the stream has ended. Then flow control no longer matters.
        let _ = body.flow_control().release_capacity(count);
    }
    Ok(())
}

fn head(Copying { context, asked, number, .. }: Copying<'_>) -> Option<http::Request<()>> {
    let message = &asked.message;
    let mut request =
        http::Request::builder().method(message.method.as_str()).uri(asked.url()).body(()).ok()?;
    let map = request.headers_mut();
    *map = fields_of(&message.fields);
    if context.run.numbers.is_some() {
        map.insert(http::HeaderName::from_bytes(REQUEST_ID.as_bytes()).ok()?, number.into());
    }
    if let Some(body) = &message.body {
        map.insert(http::header::CONTENT_LENGTH, body.len().into());
    }
    Some(request)
}

fn failure(error: &h2::Error, ended: PathFailure) -> PathFailure {
    if error.is_remote() && error.is_reset() {
        PathFailure::Reset
    } else if error.is_io() || error.is_remote() {
        ended
    } else {
        PathFailure::NotHttp
    }
}
