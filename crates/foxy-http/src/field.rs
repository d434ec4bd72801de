//! One line of a header list: where it lies in the list's text. The text is the list's.

/// Where a header line's name and value lie in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) tag: u32,
    pub(crate) name_start: u32,
    pub(crate) name_length: u32,
    pub(crate) value_start: u32,
    pub(crate) value_length: u32,
}

impl Field {
    /// A field whose name and value start at these places of a text of at most `u32::MAX` bytes.
    pub(crate) fn new(name: &[u8], name_start: usize, value: &[u8], value_start: usize) -> Self {
        Self {
            tag: tag(name),
            name_start: name_start as u32,
            name_length: name.len() as u32,
            value_start: value_start as u32,
            value_length: value.len() as u32,
        }
    }
}

/// A summary of a name that is the same in any case, so that a look-up compares few names.
pub(crate) fn tag(name: &[u8]) -> u32 {
    match name {
        [first, .., last] => {
            u32::from(first | 0x20)
                | u32::from(last | 0x20) << 8
                | u32::try_from(name.len()).unwrap_or(0) << 16
        }
        _ => 0,
    }
}
