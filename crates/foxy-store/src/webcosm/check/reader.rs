//! Reads bytes of the checked file through a function that the caller provides.

use foxy_device::IoError;

/// A function that reads from a byte offset into a buffer. Returns the number of bytes read, which
/// is smaller at the end of the file.
pub type ReadBytes<'a> = dyn FnMut(u64, &mut [u8]) -> Result<usize, IoError> + 'a;

pub struct Reader<'a> {
    read: &'a mut ReadBytes<'a>,
}

impl<'a> Reader<'a> {
    pub fn new(read: &'a mut ReadBytes<'a>) -> Self {
        Self { read }
    }

    /// Reads exactly `length` bytes. Fails with [`IoError::Device`] if the file ends earlier.
    pub fn exactly(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, IoError> {
        let mut bytes = vec![0; length];
        let count = (self.read)(offset, &mut bytes)?;
        if count == length { Ok(bytes) } else { Err(IoError::Device) }
    }
}
