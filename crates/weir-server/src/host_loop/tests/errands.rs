//! Are requests without a socket refused exactly when their terms are not met?

use super::rig::{host, iops, memory, volume};
use crate::errand::{Answer, Ask, Errands, NewErrand, NotDone, Telling, Terms};
use crate::host_loop::{ClientId, HostLoop, Replies, ReplyTo};
use std::sync::mpsc::{Receiver, channel};
use weir_core::{DeviceId, VolumeSpec};
use weir_units::{Bytes, Instant, Span};

/// Two volumes of one operation per second each, and what is asked of them.
struct Asked {
    host: HostLoop,
    errands: Errands,
    touched: Vec<ClientId>,
    now: Instant,
}

impl Replies for Asked {
    fn reply_to(&mut self, client: ClientId) -> Option<ReplyTo<'_>> {
        self.touched.push(client);
        self.errands.reply_to(client)
    }
}

impl Asked {
    fn new() -> Self {
        let size = Bytes::mib(1);
        let slow = VolumeSpec { limits: iops(1), ..volume(size) };
        let stores = vec![memory(size), memory(size)];
        let host = HostLoop::new(host(vec![slow.clone(), slow]), stores).expect("a sound host");
        Self { host, errands: Errands::default(), touched: Vec::new(), now: Instant::ZERO }
    }

    fn ask(&mut self, device: usize, terms: Terms) -> Receiver<Answer> {
        let (sender, answer) = channel();
        let told = Telling::new(move |answer| drop(sender.send(answer)));
        let ask = Ask::Read { offset: 0, len: 512 };
        let new = NewErrand { device: DeviceId(device), ask, terms, from: None, told };
        self.errands.take(new, self.now, &mut self.host);
        answer
    }

    /// Asks until a request is refused; returns how many were not.
    fn taken(&mut self, device: usize, terms: Terms) -> usize {
        (0..100)
            .take_while(|_| {
                !matches!(self.ask(device, terms).try_recv(), Ok(Err(NotDone::Busy(_))))
            })
            .count()
    }

    /// Moves the clock of the host.
    fn advance(&mut self, now: Instant) {
        self.now = now;
        let spare = Self::new().host;
        let mut host = std::mem::replace(&mut self.host, spare);
        host.advance(now, self);
        self.host = host;
        for id in std::mem::take(&mut self.touched) {
            self.errands.look_after(id);
        }
    }
}

#[test]
fn a_queue_takes_as_many_requests_as_its_terms_allow_and_not_one_more() {
    for most in 0..4 {
        let terms = Terms { most_before: Some(most), ..Terms::default() };
        let mut asked = Asked::new();
        assert_eq!(asked.taken(0, terms), most);
        // Each device has a queue of its own.
        assert_eq!(asked.taken(1, terms), most);
        assert_eq!(asked.taken(0, terms), 0);
    }
    let mut asked = Asked::new();
    let terms = Terms { most_before: Some(3), ..Terms::default() };
    assert_eq!(asked.taken(0, terms), 3);
    // An answer makes room for one more.
    asked.advance(Instant::from_nanos(500_000_000));
    assert_eq!(asked.taken(0, terms), 1);
    asked.errands.forget_all();
    assert_eq!(asked.taken(0, terms), 3);
}

#[test]
fn a_request_that_would_wait_longer_than_its_terms_is_refused() {
    let mut asked = Asked::new();
    let any = Terms::default();
    let answers: Vec<_> = (0..3).map(|_| asked.ask(0, any)).collect();
    let wait = asked.host.backlog(Instant::ZERO, DeviceId(0));
    assert!(wait.nanos().abs_diff(3_000_000_000) <= 2, "{wait}");
    let most = |nanos| Terms { most_wait: Some(Span::from_nanos(nanos)), ..any };
    let refused = asked.ask(0, most(wait.nanos() - 1));
    assert_eq!(refused.try_recv(), Ok(Err(NotDone::Busy(wait))));
    let taken = asked.ask(0, most(wait.nanos()));
    assert!(taken.try_recv().is_err());
    asked.errands.forget_all();
    for answer in answers.into_iter().chain([taken]) {
        assert_eq!(answer.try_recv(), Ok(Err(NotDone::Gone)));
    }
}
