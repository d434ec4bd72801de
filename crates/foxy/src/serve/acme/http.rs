//! Sends the HTTP requests of the ACME client, with foxy's own TLS settings. Each request has a
//! connection of its own.

use foxy_proxy::upstream::OriginTls;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use std::pin::Pin;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest time for a request and its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest size of a response's body.
const MAX_BODY_BYTES: usize = 1 << 20;
const HTTPS_PORT: u16 = 443;

pub struct AcmeHttp {
    pub tls: OriginTls,
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl HttpClient for AcmeHttp {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let tls = self.tls.clone();
        Box::pin(async move {
            let url = request.uri().clone();
            let sent = timeout(REQUEST_TIMEOUT, send(&tls, request)).await;
            let result = sent.unwrap_or_else(|_| Err("no answer in time".into()));
            result.map_err(|why| Error::Other(format!("{url}: {why}").into()))
        })
    }
}

async fn send(
    tls: &OriginTls,
    mut request: Request<BodyWrapper<Bytes>>,
) -> Result<BytesResponse, AnyError> {
    let url = request.uri().clone();
    let (Some("https"), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return Err("the URL does not begin with https://".into());
    };
    let (host, port) = (authority.host(), authority.port_u16().unwrap_or(HTTPS_PORT));
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((address, port)).await?;
    let stream = tls.open(host, stream).await.map_err(|why| format!("TLS: {why:?}"))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    request.headers_mut().insert(HOST, HeaderValue::from_str(authority.as_str())?);
    *request.uri_mut() = url.path_and_query().map_or(Ok(Uri::from_static("/")), |path| {
        Uri::builder().path_and_query(path.clone()).build()
    })?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, MAX_BODY_BYTES).collect().await?.to_bytes();
    driver.abort();
    Ok(BytesResponse::from(Response::from_parts(head, Full::new(body))))
}
