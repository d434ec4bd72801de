//! What a finished operation amounts to: the bytes that a read gave, or whether a write moved all
//! of its own.

use foxy_device::{IoBuffer, IoDone, IoError, IoOutput};

/// A read's bytes, cut to what was moved.
pub fn read(done: IoDone) -> Result<IoBuffer, IoError> {
    match (done.result?, done.buffer) {
        (IoOutput::Moved { count }, Some(mut buffer)) if count <= buffer.len() => {
            buffer.truncate(count);
            Ok(buffer)
        }
        _ => Err(IoError::Device),
    }
}

/// Whether a write moved everything; operations without a buffer only succeed or fail.
pub fn written(done: &IoDone) -> Result<(), IoError> {
    match (&done.result, &done.buffer) {
        (Err(error), _) => Err(*error),
        (Ok(IoOutput::Moved { count }), Some(buffer)) if *count < buffer.len() => {
            Err(IoError::Device)
        }
        _ => Ok(()),
    }
}
