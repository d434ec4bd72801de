//! An exchange over HTTP/2 (RFC 9113): a connection of its own with one stream, as no connection to
//! an origin is used again (R120).

use super::{Exchange, Failure};
use crate::wire::one_stream::{self, OneStream};
use crate::wire::streams::fields_of;
use crate::wire::tls::outbound::Channel;
use foxy_base::clock;
use tokio::time::timeout;

impl Exchange<'_> {
    pub(super) async fn run_http2(&mut self, channel: Channel) -> Result<(), Failure> {
        let (shared, asked) = (self.shared, &self.errand.request);
        let (limit, body) = (shared.options.time_limit, asked.has_body.then(|| asked.body.clone()));
        let request = self.request().ok_or(Failure::NotHttp)?;
        let answered = async {
            let mut stream = OneStream::open(channel).await?;
            let response = stream.ask(request, body)?.await?;
            Ok((stream, response))
        };
        let answered = timeout(limit, answered).await.map_err(|_| Failure::AnswerTimeout)?;
        let (_stream, response) = answered.map_err(|error| failure(&error, Failure::Unanswered))?;
        shared.alarm.until(clock::monotonic() + shared.options.round_trip).await;
        let (first, (parts, mut body)) = (clock::monotonic(), response.into_parts());
        let (head, length) =
            one_stream::head_of(&asked.head.method, &parts).ok_or(Failure::NotHttp)?;
        if self.begin(head, length, first) {
            return Ok(());
        }
        while let Some(data) = timeout(limit, body.data()).await.map_err(|_| Failure::Hung)? {
            let data = data.map_err(|error| failure(&error, Failure::ClosedEarly))?;
            let count = data.len();
            self.add(data, Some(first)).await?;
            // A window that cannot be given back belongs to a stream that has ended.
            let _ = body.flow_control().release_capacity(count);
        }
        self.end(Some(first)).await
    }

    fn request(&self) -> Option<http::Request<()>> {
        let asked = &self.errand.request;
        let method = asked.head.method.as_str();
        let mut request = http::Request::builder().method(method).uri(&*asked.url).body(()).ok()?;
        let mut fields = self.fields();
        for name in ["host", "transfer-encoding"] {
            fields.remove(name);
        }
        *request.headers_mut() = fields_of(&fields);
        Some(request)
    }
}

fn failure(error: &h2::Error, ended: Failure) -> Failure {
    if error.is_io() || error.is_remote() { ended } else { Failure::NotHttp }
}
