//! A GET or HEAD in progress: what every step from the look-up to the answer needs.

use crate::answer;
use crate::cache::epoch::Epoch;
use crate::client::sender::Sender;
use crate::core::fields::View;
use crate::request::reason::ErrorReason;
use crate::request::sent::{Aborted, After, Sent};
use crate::request::wanted::Wanted;
use crate::worker::Worker;
use foxy_rules::RequestControl;
use std::rc::Rc;

/// A request that the cache is asked about, while it is answered.
pub(crate) struct Transaction<'a, 'client> {
    pub(crate) worker: &'a Rc<Worker>,
    pub(crate) sender: &'a mut Sender<'client>,
    pub(crate) wanted: &'a Wanted<'a>,
    /// The directives of the request's Cache-Control.
    pub(crate) control: RequestControl,
    /// When the request came.
    pub(crate) came: Epoch,
    /// When the look-up in progress began.
    pub(crate) epoch: Epoch,
}

impl<'a, 'client> Transaction<'a, 'client> {
    pub(crate) fn begin(
        worker: &'a Rc<Worker>,
        sender: &'a mut Sender<'client>,
        wanted: &'a Wanted<'a>,
    ) -> Self {
        let control = RequestControl::of(&View(&wanted.head.headers));
        let came = worker.shared.cache.epoch(&wanted.key);
        Self { worker, sender, wanted, control, came, epoch: came }
    }

    /// Begins another look-up for the same request.
    pub(crate) fn look_again(&mut self) {
        self.epoch = self.worker.shared.cache.epoch(&self.wanted.key);
    }

    /// Answers with an error of the proxy's own.
    pub(crate) async fn error(&mut self, reason: ErrorReason) -> Result<(After, Sent), Aborted> {
        answer::error(self.worker, self.sender, self.wanted.options, reason).await
    }
}
