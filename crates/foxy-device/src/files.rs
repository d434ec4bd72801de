//! The files that a device has open, by name, for its own thread and those that read beside it.

use crate::io::FileId;
use crate::tree::OpenFile;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The files.
#[derive(Debug, Default)]
pub(crate) struct Files(RwLock<HashMap<FileId, Arc<OpenFile>>>);

impl Files {
    /// The open file of that name.
    pub(crate) fn get(&self, file: FileId) -> Option<Arc<OpenFile>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&file).cloned()
    }

    /// A file was opened.
    pub(crate) fn insert(&self, file: FileId, open: OpenFile) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(file, Arc::new(open));
    }

    /// A file is let go of; who has it still reads and writes it.
    pub(crate) fn remove(&self, file: FileId) -> Option<Arc<OpenFile>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&file)
    }
}
