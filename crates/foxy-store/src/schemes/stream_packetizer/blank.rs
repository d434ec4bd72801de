//! A file that begins with zeros is foxy's, begun and never stamped, only if there is nothing else in all of it. Files
//! with anything further on are somebody else's and are left alone.

use super::StreamPacketizer;
use super::io::Pending;
use crate::contract::Outbox;
use crate::layout::PAGE;
use crate::status::OpenStoreError;
use foxy_device::{IoBuffer, IoError};

/// Bytes read at once.
const READ_AT_ONCE: u64 = 1 << 20;

impl StreamPacketizer {
    /// Reads on from this byte; at the end of the file the store is begun.
    pub(super) fn read_blank(&mut self, from: u64, out: &mut Outbox) {
        match self.file_size.saturating_sub(from) {
            0 => self.create(self.settings.size, out),
            left => {
                let length = usize::try_from(left.min(READ_AT_ONCE)).expect("at most a mebibyte");
                self.submit_read(from, length, Pending::Blank(from), out);
            }
        }
    }

    pub(super) fn blank_read(&mut self, from: u64, result: Result<IoBuffer, IoError>, out: &mut Outbox) {
        const ZEROS: [u8; PAGE] = [0; PAGE];
        match result {
            Err(error) => self.fail(OpenStoreError::Device(error), out),
            Ok(bytes) if bytes.is_empty() => self.fail(OpenStoreError::Device(IoError::Device), out),
            Ok(bytes) if bytes.as_ref().chunks(PAGE).all(|page| page == &ZEROS[..page.len()]) => {
                self.read_blank(from + bytes.len() as u64, out);
            }
            Ok(_) => self.fail(OpenStoreError::Foreign, out),
        }
    }
}
