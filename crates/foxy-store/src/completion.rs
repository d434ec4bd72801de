//! Converts finished disk operations to the results that storage schemes need.

use foxy_device::{IoBuffer, IoDone, IoError, IoOutput};

/// Returns the bytes that a read returned. Cuts off the unused end of the buffer.
pub fn read(done: IoDone) -> Result<IoBuffer, IoError> {
    match (done.result?, done.buffer) {
        (IoOutput::Moved { count }, Some(mut buffer)) if count <= buffer.len() => {
            buffer.truncate(count);
            Ok(buffer)
        }
        _ => Err(IoError::Device),
    }
}

/// Checks a finished write. Returns an error if the write failed, or wrote only some of its bytes.
pub fn written(done: &IoDone) -> Result<(), IoError> {
    match (&done.result, &done.buffer) {
        (Err(error), _) => Err(*error),
        (Ok(IoOutput::Moved { count }), Some(buffer)) if *count < buffer.len() => {
            Err(IoError::Device)
        }
        _ => Ok(()),
    }
}
