//! Requests that wait for an answer, found by the cookie on the wire.
//!
//! A simple reply does not say how much data it brings, so that is kept here. The
//! cookie on the wire is a slot number with the slot's generation above it and the
//! connection's label above that: a look-up is one index, and a second answer to a
//! request is seen for what it is.

#[derive(Debug, Default)]
pub(super) struct Pending {
    slots: Vec<Slot>,
    free: Vec<u32>,
    label: u16,
}

#[derive(Debug)]
struct Slot {
    generation: u16,
    waiting: bool,
    cookie: u64,
    length: u32,
}

impl Pending {
    pub(super) const fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Remembers a request by the caller's cookie; returns the one for the wire.
    pub(super) fn insert(&mut self, cookie: u64, length: u32) -> u64 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, waiting: false, cookie: 0, length: 0 });
            u32::try_from(self.slots.len() - 1)
                .unwrap_or_else(|_| unreachable!("four billion requests do not fit in memory"))
        });
        let slot = &mut self.slots[number as usize];
        *slot = Slot { waiting: true, cookie, length, ..*slot };
        u64::from(self.label) << 48 | u64::from(slot.generation) << 32 | u64::from(number)
    }

    /// Sets the label of the cookies on the wire.
    pub(super) fn set_label(&mut self, label: u16) {
        assert_eq!(self.count(), 0, "those that wait have another label");
        self.label = label;
    }

    /// Returns the bytes of data in the answer to a request, if it is waiting.
    pub(super) fn length(&self, wire: u64) -> Option<u32> {
        let (number, generation, label) = split(wire);
        let slot = self.slots.get(number as usize)?;
        (slot.waiting && slot.generation == generation && label == self.label)
            .then_some(slot.length)
    }

    /// Returns the caller's cookie of a request that is waiting.
    pub(super) fn cookie(&self, wire: u64) -> u64 {
        self.slots[split(wire).0 as usize].cookie
    }

    /// Forgets a request that is waiting; returns the caller's cookie.
    pub(super) fn remove(&mut self, wire: u64) -> u64 {
        let (number, generation, _) = split(wire);
        let slot = &mut self.slots[number as usize];
        assert!(slot.waiting && slot.generation == generation, "{wire:#x} is not waiting");
        slot.waiting = false;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(number);
        slot.cookie
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the three parts of a cookie")]
const fn split(wire: u64) -> (u32, u16, u16) {
    (wire as u32, (wire >> 32) as u16, (wire >> 48) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[derive(Debug, Clone)]
    enum Op {
        Insert { cookie: u64, length: u32 },
        Remove(prop::sample::Index),
        Look(u64),
    }

    fn any_op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0u64..4, any::<u32>()).prop_map(|(cookie, length)| Op::Insert { cookie, length }),
            any::<prop::sample::Index>().prop_map(Op::Remove),
            (2u64..4, 0u64..4, 0u64..4)
                .prop_map(|(label, high, low)| Op::Look(label << 48 | high << 32 | low)),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_map_that_makes_its_own_keys(ops in prop::collection::vec(any_op(), 0..60)) {
            let (mut pending, mut model) = (Pending::default(), HashMap::new());
            pending.set_label(3);
            let mut ever = Vec::new();
            for op in ops {
                match op {
                    Op::Insert { cookie, length } => {
                        let wire = pending.insert(cookie, length);
                        prop_assert!(!ever.contains(&wire), "{wire:#x} came twice");
                        ever.push(wire);
                        model.insert(wire, (cookie, length));
                    }
                    Op::Remove(_) if model.is_empty() => {}
                    Op::Remove(index) => {
                        let mut wires: Vec<u64> = model.keys().copied().collect();
                        wires.sort_unstable();
                        let wire = wires[index.index(wires.len())];
                        let expect = model.remove(&wire).map(|(cookie, _)| cookie);
                        prop_assert_eq!(Some(pending.remove(wire)), expect);
                    }
                    Op::Look(wire) => {
                        let expect = model.get(&wire).map(|&(_, length)| length);
                        prop_assert_eq!(pending.length(wire), expect);
                    }
                }
                prop_assert_eq!(pending.count(), model.len());
            }
        }
    }
}
