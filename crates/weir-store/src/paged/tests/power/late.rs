//! Writes that come while something is made durable.

use super::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A [`Machine`] with a client that writes behind the first sync of a snapshot.
#[derive(Debug)]
struct Late {
    machine: Machine,
    store: OnceLock<PagedStore>,
    is_due: AtomicBool,
}

impl Home for Late {
    fn check_size(&self, size: Bytes) -> Result<()> {
        self.machine.check_size(size)
    }

    fn make(&self, number: u64, size: Bytes) -> Result<Parts> {
        self.machine.make(number, size)
    }

    fn save(&self, list: &LayerList) -> Result<()> {
        self.machine.save(list)
    }

    fn synced(&self, number: u64) -> Result<()> {
        if self.is_due.swap(false, Ordering::Relaxed) {
            self.store.get().expect("the volume").write_at(BASE, &[2; 512])?;
        }
        self.machine.synced(number)
    }

    fn remove(&self, number: u64) -> Result<()> {
        self.machine.remove(number)
    }
}

/// A snapshot syncs its layer once while changes go on, and once more without changes: nobody syncs the
/// layer again, so a write in between would never be durable.
#[test]
fn a_write_during_a_snapshot_survives_a_loss_of_power_after_it() {
    let machine = Machine::new();
    let is_due = AtomicBool::new(false);
    let home = Arc::new(Late { machine: machine.clone(), store: OnceLock::new(), is_due });
    let store = PagedStore::create(Arc::clone(&home) as Arc<dyn Home>, Bytes::new(START)).unwrap();
    let store = home.store.get_or_init(|| store);
    store.write_at(BASE, &[1; 512]).unwrap();
    home.is_due.store(true, Ordering::Relaxed);
    let id = store.snapshot().unwrap();
    assert!(!home.is_due.load(Ordering::Relaxed), "no sync was announced");
    let written = |store: &dyn Store| {
        let mut found = [0; 512];
        store.read_at(BASE, &mut found).unwrap();
        found
    };
    for seed in 0..32 {
        let after = machine.after(After::PowerLoss, seed).open();
        assert_eq!(written(&after), [2; 512], "seed {seed}");
        assert_eq!(written(&*after.view(id).unwrap()), [2; 512], "seed {seed}");
    }
}
