//! Requests to a store that speaks S3. Each request has a time limit, and is counted.

use crate::cold::figures::{ColdFigures, RequestKind, RequestResult};
use crate::cold::index::SegmentId;
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    ClientOptions, Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, RetryConfig, UpdateVersion,
};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit for writing a segment.
const SEGMENT_LIMIT: Duration = Duration::from_secs(60);
/// Time limit for a manifest, a footer or a list.
const MANIFEST_LIMIT: Duration = Duration::from_secs(10);
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// The place of the cold tier, and how to reach it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreAddress {
    /// Name of the bucket.
    pub bucket: String,
    /// Beginning of the names of all objects, without slashes at both ends.
    pub prefix: String,
    /// URL of the server. `None` means Amazon S3.
    pub endpoint: Option<String>,
    /// The region of the bucket.
    pub region: String,
    /// The access key's name and secret. `None` means the machine's role.
    pub credentials: Option<(String, String)>,
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}

impl StoreAddress {
    /// Reads `s3://BUCKET` or `s3://BUCKET/PREFIX`. Returns the bucket and the prefix.
    pub fn read(url: &str) -> Option<(String, String)> {
        let rest = url.strip_prefix("s3://")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_bucket = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let is_fine = |byte: u8| is_bucket(byte) || byte == b'/';
        let prefix = prefix.trim_matches('/');
        let is_sound = !bucket.is_empty()
            && bucket.bytes().all(is_bucket)
            && prefix.bytes().all(is_fine)
            && !prefix.contains("//");
        is_sound.then(|| (bucket.to_owned(), prefix.to_owned()))
    }
}

/// The reason why a request to the store failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteError {
    /// Another process has written the object since.
    Conflict,
    /// There is no such object.
    Missing,
    /// The store did not answer in time.
    Timeout,
    /// The store answered with an error, or the connection failed.
    Failed,
}

impl RemoteError {
    fn of(error: &Error) -> Self {
        match error {
            Error::NotFound { .. } => Self::Missing,
            Error::AlreadyExists { .. } | Error::Precondition { .. } => Self::Conflict,
            _ => Self::Failed,
        }
    }

    const fn result(self) -> RequestResult {
        match self {
            Self::Conflict => RequestResult::Conflict,
            Self::Missing => RequestResult::Missing,
            Self::Timeout => RequestResult::Timeout,
            Self::Failed => RequestResult::Failed,
        }
    }
}

/// The version of a manifest in the store.
pub type Version = Option<String>;

/// A client of the store.
pub struct Remote {
    store: AmazonS3,
    prefix: Path,
    figures: Arc<ColdFigures>,
}

impl Remote {
    /// Creates a client. Sends nothing yet.
    pub(crate) fn new(address: &StoreAddress, figures: Arc<ColdFigures>) -> Result<Self, String> {
        let options = ClientOptions::new()
            .with_timeout(SEGMENT_LIMIT)
            .with_connect_timeout(CONNECT_LIMIT)
            .with_allow_http(true);
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&address.bucket)
            .with_region(&address.region)
            .with_client_options(options)
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() });
        if let Some(endpoint) = &address.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some((name, secret)) = &address.credentials {
            builder = builder.with_access_key_id(name).with_secret_access_key(secret);
        }
        let store = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { store, prefix: Path::from(address.prefix.as_str()), figures })
    }

    fn segment(&self, SegmentId { era, id }: SegmentId) -> Path {
        self.prefix.clone().join("segments").join(format!("{era:016x}-{id:016x}"))
    }

    fn manifests(&self) -> Path {
        self.prefix.clone().join("manifests")
    }

    async fn within<T>(
        &self,
        kind: RequestKind,
        limit: Duration,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, RemoteError> {
        let answer = match timeout(limit, request).await {
            Ok(answer) => answer.map_err(|error| RemoteError::of(&error)),
            Err(_) => Err(RemoteError::Timeout),
        };
        let result = answer.as_ref().err().map_or(RequestResult::Ok, |error| error.result());
        self.figures.count(kind, result);
        answer
    }

    /// Writes a segment. An earlier attempt may have written it, which the store then tells.
    pub(crate) async fn put_segment(&self, id: SegmentId, bytes: Bytes) -> Result<(), RemoteError> {
        let path = self.segment(id);
        self.figures.sent(bytes.len());
        let put = self.store.put_opts(&path, PutPayload::from(bytes), PutMode::Create.into());
        match self.within(RequestKind::PutSegment, SEGMENT_LIMIT, put).await {
            Ok(_) | Err(RemoteError::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes the manifest of a node, if the store still has the given version. Returns the new
    /// version.
    pub(crate) async fn put_manifest(
        &self,
        era: u64,
        bytes: Bytes,
        version: Version,
    ) -> Result<Version, RemoteError> {
        let path = self.manifests().join(format!("{era:016x}"));
        let mode = match version {
            Some(_) => PutMode::Update(UpdateVersion { e_tag: version, version: None }),
            None => PutMode::Create,
        };
        self.figures.sent(bytes.len());
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.store.put_opts(&path, PutPayload::from(bytes), options);
        let put = self.within(RequestKind::PutManifest, MANIFEST_LIMIT, put).await?;
        Ok(put.e_tag)
    }

    /// Returns the numbers and versions of all manifests.
    pub(crate) async fn list(&self) -> Result<Vec<(u64, Version)>, RemoteError> {
        let path = self.manifests();
        let list = self.store.list(Some(&path)).try_collect::<Vec<_>>();
        let found = self.within(RequestKind::List, MANIFEST_LIMIT, list).await?;
        let era = |path: &Path| u64::from_str_radix(path.filename()?, 16).ok();
        let named = found.into_iter().filter_map(|meta| Some((era(&meta.location)?, meta.e_tag)));
        Ok(named.collect())
    }

    /// Reads a manifest with its version.
    pub(crate) async fn manifest(&self, era: u64) -> Result<(Bytes, Version), RemoteError> {
        let path = self.manifests().join(format!("{era:016x}"));
        let get = async {
            let found = self.store.get(&path).await?;
            let version = found.meta.e_tag.clone();
            Ok((found.bytes().await?, version))
        };
        let found = self.within(RequestKind::GetManifest, MANIFEST_LIMIT, get).await?;
        self.figures.received(found.0.len());
        Ok(found)
    }

    /// Reads bytes at the end of a segment.
    pub(crate) async fn footer(
        &self,
        id: SegmentId,
        range: Range<u64>,
    ) -> Result<Bytes, RemoteError> {
        self.range(RequestKind::GetFooter, MANIFEST_LIMIT, id, range).await
    }

    /// Reads records of a segment.
    pub(crate) async fn records(
        &self,
        id: SegmentId,
        range: Range<u64>,
        limit: Duration,
    ) -> Result<Bytes, RemoteError> {
        self.range(RequestKind::GetRecords, limit, id, range).await
    }

    async fn range(
        &self,
        kind: RequestKind,
        limit: Duration,
        id: SegmentId,
        range: Range<u64>,
    ) -> Result<Bytes, RemoteError> {
        let path = self.segment(id);
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let get = async { self.store.get_opts(&path, options).await?.bytes().await };
        let bytes = self.within(kind, limit, get).await?;
        self.figures.received(bytes.len());
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_bucket_and_a_prefix() {
        let read = |url| StoreAddress::read(url);
        let pair = |bucket: &str, prefix: &str| Some((bucket.to_owned(), prefix.to_owned()));
        assert_eq!(read("s3://cache"), pair("cache", ""));
        assert_eq!(read("s3://cache/foxy/eu/"), pair("cache", "foxy/eu"));
        for wrong in ["cache", "s3://", "s3:///x", "http://cache/x", "s3://a b", "s3://a/x//y"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
