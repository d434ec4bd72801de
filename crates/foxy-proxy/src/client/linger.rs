//! Closes a connection without losing the answer.

use crate::client::io::ClientConnection;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// How long a closing connection may still send, so that our last answer is not lost to a reset.
pub(crate) const LINGER: Duration = Duration::from_secs(2);

/// Bytes read and dropped while a connection closes.
pub(crate) const LINGER_BYTES: usize = 256 << 10;

/// Closes a connection without losing the answer: the client's further bytes are read and dropped
/// for a while.
pub(crate) async fn linger(connection: &mut ClientConnection) {
    let drop_rest = async {
        if connection.stream.shutdown().await.is_err() {
            return;
        }
        let mut scratch = vec![0; 4096];
        let mut read = 0;
        while read < LINGER_BYTES {
            match tokio::io::AsyncReadExt::read(&mut connection.stream, &mut scratch).await {
                Ok(0) | Err(_) => return,
                Ok(count) => read += count,
            }
        }
    };
    let _patience_over = timeout(LINGER, drop_rest).await;
}
