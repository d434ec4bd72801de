//! Reading the file piece by piece through whoever can; it knows no device.

use foxy_device::IoError;

/// Reads bytes of the file from an offset on and says how many there were: fewer only at the file's
/// end.
pub type ReadBytes<'a> = dyn FnMut(u64, &mut [u8]) -> Result<usize, IoError> + 'a;

/// The file.
pub struct Reader<'a> {
    read: &'a mut ReadBytes<'a>,
}

impl<'a> Reader<'a> {
    /// A file that is read so.
    pub fn new(read: &'a mut ReadBytes<'a>) -> Self {
        Self { read }
    }

    /// Reads exactly `length` bytes.
    ///
    /// # Errors
    /// The device's, or [`IoError::Device`] when the file ends before.
    pub fn exactly(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, IoError> {
        let mut bytes = vec![0; length];
        let count = (self.read)(offset, &mut bytes)?;
        if count == length { Ok(bytes) } else { Err(IoError::Device) }
    }
}
