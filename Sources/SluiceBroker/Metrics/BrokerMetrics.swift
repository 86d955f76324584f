import Synchronization

/// A broker's numbers. From any thread; each is exact, those of one snapshot are of about the same moment.
public final class BrokerMetrics: Sendable {
  private final class Number: Sendable {
    let value = Atomic<Int>(0)
  }

  /// In the order of the metrics.
  private let numbers = BrokerMetric.allCases.map { _ in Number() }

  init() {}

  public subscript(metric: BrokerMetric) -> Int { numbers[metric.rawValue].value.load(ordering: .relaxed) }

  func add(_ metric: BrokerMetric, _ count: Int = 1) {
    numbers[metric.rawValue].value.wrappingAdd(count, ordering: .relaxed)
  }

  func set(_ metric: BrokerMetric, to value: Int) {
    numbers[metric.rawValue].value.store(value, ordering: .relaxed)
  }
}
