//! Sends foxy's own HTTP requests, with foxy's own TLS settings. Each request has a connection of
//! its own.

use foxy_proxy::upstream::{OriginTls, Scheme};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Largest size of a response's body.
const MAX_BODY_BYTES: usize = 1 << 20;

pub type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A connection with or without TLS. A single type keeps the program small.
trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Sends a request whose URI is a whole URL.
pub async fn send(tls: &OriginTls, request: Request<Bytes>) -> Result<Response<Bytes>, AnyError> {
    let mut request = request.map(Full::new);
    let url = request.uri().clone();
    let scheme = Scheme::named(url.scheme_str().unwrap_or_default().as_bytes());
    let (Some(scheme), Some(authority)) = (scheme, url.authority()) else {
        return Err("the URL does not begin with http:// or https://".into());
    };
    let (host, port) = (authority.host(), authority.port_u16().unwrap_or(scheme.default_port()));
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((address, port)).await?;
    let stream: Box<dyn ByteStream> = match scheme {
        Scheme::Http => Box::new(stream),
        Scheme::Https => {
            Box::new(tls.open(host, stream).await.map_err(|why| format!("TLS: {why:?}"))?)
        }
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    request.headers_mut().insert(HOST, HeaderValue::from_str(authority.as_str())?);
    *request.uri_mut() = url.path_and_query().map_or(Ok(Uri::from_static("/")), |path| {
        Uri::builder().path_and_query(path.clone()).build()
    })?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, MAX_BODY_BYTES).collect().await?.to_bytes();
    driver.abort();
    Ok(Response::from_parts(head, body))
}
