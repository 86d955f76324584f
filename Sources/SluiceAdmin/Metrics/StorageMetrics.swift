import SluiceBroker
import SluiceWire

/// The metrics of the broker's store. A broker without durable topics has none of them.
enum StorageMetrics {
  static func write(_ storage: StorageSnapshot, to text: inout MetricsText) {
    func gauge(_ name: String, unit: String? = nil, _ help: String, _ value: UInt64?) {
      guard let value else { return }
      text.family("sluice_storage_\(name)", .gauge, unit: unit, help)
      text.sample(value)
    }
    text.family(
      "sluice_storage_limit_bytes", .gauge, unit: "bytes",
      "Bytes that the store may take; +Inf for no limit.")
    text.sample(storage.limit.map { Double($0) } ?? .infinity)
    gauge("used_bytes", unit: "bytes", "Bytes of the store's files that are in use.", storage.usedBytes)
    gauge("file_bytes", unit: "bytes", "Bytes of the store's files.", storage.fileBytes)
    gauge(
      "disk_available_bytes", unit: "bytes", "Bytes that the store's file system has left.",
      storage.availableBytes)
    text.family(
      "sluice_storage_fullness_ratio", .gauge, "The share of the store's limit that is in use, from 0 to 1.")
    text.sample(storage.status.fullness ?? 0)
    gauge(
      "full",
      "1 while the store, or its disk, has no room and publishers of durable topics wait; 0 otherwise.",
      storage.state == .full ? 1 : 0)
    gauge(
      "failing",
      "1 while the store's disk reports errors and publishers of durable topics wait; 0 otherwise.",
      storage.state == .failing ? 1 : 0)
    text.family(
      "sluice_storage_trouble_seconds", .gauge, unit: "seconds",
      "For how long the store has been full or failing; 0 while it takes records.")
    text.sample(Double(storage.since) / 1000)
    gauge(
      "waiting_publishers", "Publishers that the broker has turned away until the store takes records again.",
      UInt64(storage.waiting))
  }
}
