use super::*;
use model::{HourlyRate, Provider};
use serde_json::json;
use std::fs;

fn key(instance_type: &str) -> PriceKey {
    PriceKey {
        provider: Provider::Aws,
        region: "us-east-1".into(),
        instance_type: instance_type.into(),
        operating_system: "Linux".into(),
        tenancy: "Shared".into(),
        license_model: "No License required".into(),
        preinstalled_software: "NA".into(),
        capacity_status: "Used".into(),
    }
}

/// A product as a line of a price list.
fn line(instance_type: &str, usd: &str) -> String {
    let product = json!({
        "product": { "productFamily": "Compute Instance", "sku": instance_type, "attributes": {
            "regionCode": "us-east-1", "locationType": "AWS Region", "instanceType": instance_type, "operatingSystem": "Linux",
            "tenancy": "Shared", "preInstalledSw": "NA", "licenseModel": "No License required", "capacitystatus": "Used",
            "marketoption": "OnDemand", "operation": "RunInstances"
        } },
        "terms": { "OnDemand": { "T": { "priceDimensions": { "D": { "unit": "Hrs", "pricePerUnit": { "USD": usd } } } } } }
    });
    format!("{product}\n")
}

/// A price list on disk, and whoever asks it.
struct Disk {
    folder: tempfile::TempDir,
    held: Option<Read>,
    /// Long after what was written.
    now: SystemTime,
}

impl Disk {
    fn with(lines: &[String]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::now() + Duration::from_secs(60);
        let disk = Self { folder, held: None, now };
        fs::write(disk.path(), lines.concat()).expect("the list");
        disk
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("offer.json")
    }

    fn price(&mut self, instance_type: &str) -> Result<String, String> {
        let path = self.path();
        let wanted = BTreeSet::from([key(instance_type)]);
        let (machines, _) = answer(&mut self.held, &path, &wanted, &BTreeSet::new(), self.now)?;
        machines.on_demand(&key(instance_type)).map(|price| price.to_string()).map_err(|why| why.to_string())
    }

    /// Whether that was answered from what was read before: what is held says another price by then than the file.
    fn is_held(&mut self, instance_type: &str) -> bool {
        let Some(read) = &mut self.held else { return false };
        let other = HourlyRate::from_micros(9);
        read.rows.machines.iter_mut().for_each(|row| row.rate = Ok(other));
        self.price(instance_type).is_ok_and(|price| price == other.to_string())
    }
}

#[test]
fn the_same_file_is_read_once_for_all_that_was_asked() {
    let mut disk = Disk::with(&[line("m5.large", "0.096"), line("m5.xlarge", "0.192")]);
    assert_eq!(disk.price("m5.large").as_deref(), Ok("$0.096/h"));
    assert!(disk.is_held("m5.large"));
    disk.now += Duration::from_hours(24);
    assert!(!disk.is_held("m5.large"));
    // What nobody asked for before is read, and then all of it is held.
    assert_eq!(disk.price("m5.xlarge").as_deref(), Ok("$0.192/h"));
    assert_eq!(disk.price("m5.large").as_deref(), Ok("$0.096/h"));
    assert!(disk.is_held("m5.large") && disk.is_held("m5.xlarge"));
    // What the list does not have is known of it, too.
    assert!(disk.price("m9.large").is_err());
    let read = disk.held.as_ref().expect("what was read");
    assert_eq!((read.machines.len(), read.rows.machines.len()), (3, 2));
}

#[test]
fn a_file_that_was_written_to_or_replaced_or_is_gone_is_not_what_it_was() {
    let mut disk = Disk::with(&[line("m5.large", "0.096")]);
    assert_eq!(disk.price("m5.large").as_deref(), Ok("$0.096/h"));
    // In its place, of the same size, and with the same time of its content.
    let before = fs::metadata(disk.path()).expect("its times");
    let other = disk.folder.path().join("other");
    fs::write(&other, line("m5.large", "0.097")).expect("another list");
    let times = fs::FileTimes::new().set_modified(before.modified().expect("a time"));
    File::options().write(true).open(&other).expect("it").set_times(times).expect("times");
    fs::rename(&other, disk.path()).expect("its name");
    assert_eq!(fs::metadata(disk.path()).expect("it").modified().expect("a time"), before.modified().expect("a time"));
    assert_eq!(disk.price("m5.large").as_deref(), Ok("$0.097/h"));
    // A link that leads elsewhere.
    let elsewhere = disk.folder.path().join("elsewhere");
    fs::write(&elsewhere, line("m5.large", "0.098")).expect("a third list");
    fs::remove_file(disk.path()).expect("gone");
    std::os::unix::fs::symlink(&elsewhere, disk.path()).expect("a link");
    assert_eq!(disk.price("m5.large").as_deref(), Ok("$0.098/h"));
    fs::remove_file(disk.path()).expect("gone");
    assert!(disk.price("m5.large").is_err_and(|why| why.contains("No such file")));
    assert!(disk.held.is_none());
}

#[test]
fn what_was_written_just_now_is_read_again() {
    let mut disk = Disk::with(&[line("m5.large", "0.096")]);
    let written = fs::metadata(disk.path()).expect("its times").modified().expect("a time");
    for (since, held) in [(-3600, false), (0, false), (1, false), (3, true)] {
        let apart = Duration::from_secs(u64::from(i32::unsigned_abs(since)));
        disk.now = if since < 0 { written - apart } else { written + apart };
        assert_eq!(disk.price("m5.large").as_deref(), Ok("$0.096/h"));
        assert_eq!(disk.held.is_some(), held, "{since} s after it was written");
    }
}

#[tokio::test]
async fn a_list_that_is_none_is_a_reason() {
    let disk = Disk::with(&["not a list".to_owned()]);
    let (machines, _) =
        OfferFile::default().ask(&disk.path(), &BTreeSet::from([key("m5.large")]), &BTreeSet::new()).await;
    let why = machines.on_demand(&key("m5.large")).expect_err("no price").to_string();
    assert!(why.contains("offer.json") && why.contains("not a price list"), "{why}");
}
