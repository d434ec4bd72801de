//! The results of finished operations.

use foxy_device::{IoBuffer, IoDone, IoError, IoOutput};

/// The bytes of a read, cut to what was moved.
pub fn read(done: IoDone) -> Result<IoBuffer, IoError> {
    match (done.result?, done.buffer) {
        (IoOutput::Moved { count }, Some(mut buffer)) if count <= buffer.len() => {
            buffer.truncate(count);
            Ok(buffer)
        }
        _ => Err(IoError::Device),
    }
}

/// Fails when a write did not move everything.
pub fn written(done: &IoDone) -> Result<(), IoError> {
    match (&done.result, &done.buffer) {
        (Err(error), _) => Err(*error),
        (Ok(IoOutput::Moved { count }), Some(buffer)) if *count < buffer.len() => {
            Err(IoError::Device)
        }
        _ => Ok(()),
    }
}
