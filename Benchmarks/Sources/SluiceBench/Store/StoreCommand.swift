import Glibc
import SluiceStore

/// `sluice-bench store`: the speed at which the durable store accepts and returns batches, compared with the disk alone.
enum StoreCommand {
  static let usage = """
    sluice-bench store --directory DIR [--megabytes N] [--payload BYTES]
      Appends N MB (256) of records (of 128 bytes) to a store in DIR, which must not be there, in commits of several sizes, and replays them;
      and writes and reads a plain file there in the same way. All that was made is removed.
    """

  /// The commits to measure: the size of the batches, and the number of batches, each of another topic.
  private static let shapes: [StoreLoad.Shape] = [
    .init(batchBytes: BatchBlock.fullBytes, batches: 8),
    .init(batchBytes: BatchBlock.fullBytes, batches: 1),
    .init(batchBytes: 4080, batches: 64),
    .init(batchBytes: 4080, batches: 8),
    .init(batchBytes: 400, batches: 1),
  ]

  static func run(_ words: [String]) throws {
    var arguments = Arguments(words)
    guard let directory = try arguments.text("directory") else {
      throw UsageError("store needs --directory, on the disk that is to be measured")
    }
    let bytes = (try arguments.integer("megabytes", in: 1...1_000_000) ?? 256) * 1_000_000
    let payload = try arguments.integer("payload", in: 1...60_000) ?? 128
    try arguments.finish()
    guard mkdir(directory, 0o700) == 0 else {
      throw BenchError("couldn't make \(directory): \(String(cString: strerror(errno)))")
    }
    defer { rmdir(directory) }
    var table = TextTable(header: [
      "commits of", "append MB/s", "records/s", "p50 ms", "p99 ms", "p99.9 ms", "disk MB/s", "p50 ms",
      "p99 ms",
      "warm MB/s", "cold MB/s", "disk cold MB/s",
    ])
    for shape in shapes {
      // Small commits take long: measures just enough of them for percentiles.
      let wanted = min(bytes, shape.bytes * 4000)
      let load = StoreLoad(shape: shape, payload: payload, path: "\(directory)/store")
      let store = try load.run(bytes: wanted)
      let disk = try RawDisk(path: "\(directory)/raw").run(bytes: wanted, group: shape.bytes)
      table.add(
        [
          "\(shape.batches) × \(shape.batchBytes) B", Format.digits(store.append.megabytesPerSecond),
          Format.count(store.recordsPerSecond),
        ] + store.append.percentiles([0.5, 0.99, 0.999])
          + [Format.digits(disk.write.megabytesPerSecond)] + disk.write.percentiles([0.5, 0.99])
          + [store.warm, store.cold, disk.cold].map(Format.digits))
    }
    print(table.rendered())
  }
}

/// The results of writing groups of bytes, each synced before the next one.
struct SyncedWrites {
  private(set) var bytes = 0
  private(set) var seconds = 0.0
  /// The time of each group, in nanoseconds.
  private var durations: [UInt64] = []

  /// - Parameter duration: in nanoseconds.
  mutating func add(bytes: Int, duration: UInt64) {
    self.bytes += bytes
    seconds += Double(duration) / 1e9
    durations.append(duration)
  }

  var megabytesPerSecond: Double { Double(bytes) / seconds / 1e6 }

  /// In milliseconds, as text.
  func percentiles(_ shares: [Double]) -> [String] {
    let sorted = durations.sorted()
    return shares.map { share in
      Statistics.percentile(share, ofSorted: sorted).map { Format.digits(Double($0) / 1e6) } ?? "-"
    }
  }
}
