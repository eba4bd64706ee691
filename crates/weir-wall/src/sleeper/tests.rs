use super::*;
use std::ops::Range;

/// A machine on a clock of its own, which wakes its thread up late.
struct Machine {
    now: u64,
    used: u64,
    polled: u64,
    sleeper: Sleeper,
    /// Lateness in nanoseconds of the wake-ups, in turn.
    late: Vec<u64>,
    wake_ups: usize,
}

/// The times of many deadlines, in nanoseconds per deadline.
#[derive(Debug)]
struct Means {
    /// From a deadline to its reply.
    late: u64,
    polled: u64,
}

/// A system call that waits for nothing.
const LOOK: u64 = 400;

impl Machine {
    fn new(waiting: Waiting, late: Vec<u64>) -> Self {
        let sleeper = Sleeper::new(waiting);
        Self { now: 0, used: 0, polled: 0, sleeper, late, wake_ups: 0 }
    }

    /// Waits until `deadline` and returns how late that is.
    fn wait(&mut self, deadline: u64) -> u64 {
        let at = Some(Instant::from_nanos(deadline));
        if self.now >= deadline {
            let timeout = self.sleeper.timeout(Instant::from_nanos(self.now), at, true);
            assert_eq!(timeout, Some(Span::ZERO));
            self.sleeper.woke(Instant::from_nanos(self.now), false);
        }
        while self.now < deadline {
            let timeout = self.sleeper.timeout(Instant::from_nanos(self.now), at, true);
            let timeout = timeout.expect("a deadline").nanos();
            if timeout == 0 {
                self.now += LOOK;
                self.polled += LOOK;
                self.used += LOOK;
            } else {
                self.now += timeout + self.late[self.wake_ups % self.late.len()];
                self.wake_ups += 1;
            }
            self.sleeper.woke(Instant::from_nanos(self.now), false);
            if self.sleeper.wants_reading() {
                self.sleeper.read(Span::from_nanos(self.used));
            }
        }
        self.now - deadline
    }

    /// Serves requests that each wait `medium` and take `work` of the processor.
    fn serve(&mut self, requests: Range<u64>, medium: u64, work: u64) -> Means {
        let count = requests.end - requests.start;
        let (mut late, polled) = (0, self.polled);
        for _ in requests {
            late += self.wait(self.now + medium);
            self.now += work;
            self.used += work;
        }
        Means { late: late / count, polled: (self.polled - polled) / count }
    }

    /// Serves clusters of requests that are due one `gap` after the other. Each round takes `round`
    /// of the processor, and each request in it `work`. Returns the mean lateness.
    fn serve_clusters(
        &mut self,
        clusters: u64,
        (size, gap): (u64, u64),
        (round, work): (u64, u64),
    ) -> u64 {
        let mut late = 0;
        for _ in 0..clusters {
            let first = self.now + MS;
            let mut due = (0..size).map(|n| first + n * gap).peekable();
            while let Some(next) = due.peek() {
                self.wait(*next);
                let (now, mut took) = (self.now, round);
                while let Some(deadline) = due.next_if(|deadline| *deadline <= now) {
                    late += now - deadline;
                    took += work;
                }
                self.now += took;
                self.used += took;
            }
        }
        late / (clusters * size)
    }

    /// Serves until the estimates are settled, and then measures.
    fn settled(&mut self, medium: u64, work: u64) -> Means {
        self.serve(0..2_000, medium, work);
        // Whole rounds of the lateness.
        self.serve(0..10_100, medium, work)
    }
}

/// Returns as many values from `from` to `to`, in mixed order.
fn spread(from: u64, to: u64) -> Vec<u64> {
    (0..101).map(|n| from + (to - from) * (n * 37 % 101) / 100).collect()
}

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

#[test]
fn a_machine_that_is_always_as_late_is_on_time() {
    let plain = Machine::new(Waiting::Late, vec![40 * US]).settled(MS, 30 * US);
    assert_eq!((plain.late, plain.polled), (40 * US, 0));
    let early = Machine::new(Waiting::Early, vec![40 * US]).settled(MS, 30 * US);
    assert_eq!((early.late, early.polled), (0, 0));
}

#[test]
fn most_of_a_varying_lateness_is_gone() {
    for (from, to) in [(10 * US, 20 * US), (20 * US, 50 * US), (100 * US, 160 * US)] {
        for medium in [300 * US, MS, 5 * MS] {
            let means = |waiting| Machine::new(waiting, spread(from, to)).settled(medium, 30 * US);
            let (plain, early) = (means(Waiting::Late), means(Waiting::Early));
            assert_eq!(plain.late, (from + to) / 2);
            // The least lateness is gone without polling, and of the rest a part.
            assert!(early.late < (to - from) / 2 - US, "{from} to {to}: {early:?}");
        }
    }
}

#[test]
fn polls_take_less_than_a_tenth_of_the_work() {
    let mut distributions = vec![spread(10 * US, 20 * US), spread(0, 300 * US), vec![15 * US]];
    // Most wake-ups are quick; some come after another program's turn.
    distributions.push([vec![15 * US; 60], vec![3 * MS; 3]].concat());
    distributions.push([vec![15 * US; 10], vec![250 * US; 10]].concat());
    for late in distributions {
        for medium in [10 * US, 60 * US, 300 * US, MS, 5 * MS] {
            for work in [5 * US, 30 * US, 200 * US] {
                let means = Machine::new(Waiting::Early, late.clone()).settled(medium, work);
                let case = format!("{late:?} {medium} {means:?}");
                // One look more may be under way when the deadline passes.
                assert!(means.polled <= work / 10 + LOOK, "{case}");
            }
        }
    }
}

#[test]
fn a_machine_that_becomes_busy_or_idle_is_learned_anew() {
    let mut machine = Machine::new(Waiting::Early, vec![15 * US]);
    machine.settled(MS, 30 * US);
    machine.late = vec![120 * US];
    assert!(machine.settled(MS, 30 * US).late < US);
    machine.late = vec![15 * US];
    let means = machine.settled(MS, 30 * US);
    assert!(means.late < US && means.polled < 3 * US, "{means:?}");
}

#[test]
fn lengths_of_sleep_are_learned_apart() {
    let mut machine = Machine::new(Waiting::Early, vec![15 * US]);
    machine.settled(300 * US, 30 * US);
    machine.late = vec![150 * US];
    machine.settled(5 * MS, 30 * US);
    machine.late = vec![15 * US];
    let means = machine.serve(0..1, 300 * US, 30 * US);
    assert_eq!((means.late, means.polled), (0, 0));
}

#[test]
fn events_end_a_sleep_and_are_no_wake_up_of_a_timer() {
    let at = |us| Instant::from_nanos(us * US);
    let mut sleeper = Sleeper::new(Waiting::Early);
    for n in 0..100 {
        let now = n * 1_000;
        sleeper.timeout(at(now), Some(at(now + 900)), true);
        // Requests come in the middle, or when the timer is due: neither says how late timers are.
        sleeper.woke(at(now + 500 + n % 2 * 450), true);
    }
    assert_eq!(sleeper.timeout(at(200_000), Some(at(200_900)), true), Some(Span::from_micros(900)));
}

#[test]
fn without_a_deadline_there_is_no_limit() {
    for waiting in [Waiting::Early, Waiting::Late] {
        let mut sleeper = Sleeper::new(waiting);
        assert_eq!(sleeper.timeout(Instant::ZERO, None, true), None);
        let past = Some(Instant::from_nanos(5));
        assert_eq!(sleeper.timeout(Instant::from_nanos(7), past, true), Some(Span::ZERO));
    }
}

#[test]
fn polling_ends_with_the_last_client() {
    let mut sleeper = Sleeper::new(Waiting::Poll);
    let far = Some(Instant::from_nanos(1_000 * MS));
    assert_eq!(sleeper.timeout(Instant::ZERO, far, false), Some(Span::ZERO));
    assert_eq!(sleeper.timeout(Instant::ZERO, None, true), Some(Span::ZERO));
    assert_eq!(sleeper.timeout(Instant::ZERO, None, false), None);
    let polled = Machine::new(Waiting::Poll, vec![40 * US]).settled(MS, 30 * US);
    assert!(polled.late <= LOOK, "{polled:?}");
}

#[test]
fn classes_double() {
    let classes = [0, 60, 66, 132, 300, 600, 1_200, 2_400, 5_000, 9_000, 1_000_000];
    let classes = classes.map(|us| class_of(Span::from_micros(us)));
    assert_eq!(classes, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8]);
}

/// A thread that is late serves several requests in one round, and one that is on time does not.
#[test]
fn additional_rounds_take_less_than_a_tenth_of_the_work() {
    for cluster in [(1, 0), (2, 10 * US), (4, 5 * US), (16, 2 * US), (16, 20 * US)] {
        for cost in [(5 * US, 2 * US), (10 * US, 5 * US), (30 * US, US)] {
            let measure = |waiting| {
                let mut machine = Machine::new(waiting, spread(30 * US, 50 * US));
                machine.serve_clusters(2_000, cluster, cost);
                let before = machine.used;
                let late = machine.serve_clusters(5_000, cluster, cost);
                (late, machine.used - before)
            };
            let (plain, early) = (measure(Waiting::Late), measure(Waiting::Early));
            let case = format!("{cluster:?} {cost:?}: {plain:?} {early:?}");
            assert!(early.1 * 10 <= plain.1 * 11, "{case}");
            assert!(early.0 < plain.0, "{case}");
        }
    }
}
