//! The receiver of each request's waits.

use std::fmt;
use std::sync::Arc;
use weir_core::Completion;

type Hears = dyn Fn(u64, &Completion) + Send + Sync;

/// A receiver of each request's completion, by the cookie that its client gave it. It is called when
/// the limits admit the request, before the reply is sent. The default receives nothing.
///
/// It runs on the host's thread and blocks it meanwhile.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<Hears>>);

impl Observer {
    /// Calls `hears`.
    #[must_use]
    pub fn with(hears: impl Fn(u64, &Completion) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hears)))
    }

    #[inline]
    pub(crate) fn hear(&self, cookie: u64, completion: &Completion) {
        if let Some(hears) = &self.0 {
            hears(cookie, completion);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}
