//! Sends the HTTP requests of the ACME client.

use crate::serve::http_client::{AnyError, send};
use foxy_proxy::upstream::OriginTls;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::timeout;

/// Longest time for a request and its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

pub struct AcmeHttp {
    pub tls: OriginTls,
}

impl HttpClient for AcmeHttp {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let tls = self.tls.clone();
        Box::pin(async move {
            let url = request.uri().clone();
            let sent = timeout(REQUEST_TIMEOUT, send_over_tls(&tls, request)).await;
            let result = sent.unwrap_or_else(|_| Err("no answer in time".into()));
            result.map_err(|why| Error::Other(format!("{url}: {why}").into()))
        })
    }
}

async fn send_over_tls(
    tls: &OriginTls,
    request: Request<BodyWrapper<Bytes>>,
) -> Result<BytesResponse, AnyError> {
    if request.uri().scheme_str() != Some("https") {
        return Err("the URL does not begin with https://".into());
    }
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let answer = send(tls, Request::from_parts(head, body)).await?;
    Ok(BytesResponse::from(answer.map(Full::new)))
}
