//! URL operations: what a proxy's two cache levels ask of its disk (R9), as values. Their file is
//! [`operation_file`](super::operation_file)'s business.

/// What is done with a URL's content on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// It is read: a hit on disk.
    Read,
    /// It is written: a miss that was fetched.
    Write,
    /// It is deleted to make room.
    Delete,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What is done.
    pub kind: OperationKind,
    /// With which URL.
    pub url: u32,
    /// Whose it is: the origin server's number.
    pub site: u32,
    /// Bytes of its content.
    pub size: u64,
}

/// A stream of operations and what it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// The operations in order.
    pub list: Vec<Operation>,
    /// URL-gets they came from.
    pub gets: u64,
    /// URL-gets that memory answered.
    pub memory_hits: u64,
    /// Bytes of the disk cache.
    pub disk: u64,
}

impl Operations {
    /// How many operations are of a kind.
    pub fn count(&self, kind: OperationKind) -> u64 {
        self.list.iter().filter(|operation| operation.kind == kind).count() as u64
    }

    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        let moved = self.list.iter().filter(|operation| operation.kind != OperationKind::Delete);
        moved.map(|operation| operation.size).sum()
    }
}
