import Glibc

extension BrokerProcess {
  /// The broker's metrics by name, at some moment during this call.
  public func metrics() throws -> [String: Int] {
    func lines() -> [String] { process.standardError.lines.filter { $0.contains(" metrics ") } }
    let before = lines().count
    process.signal(SIGUSR1)
    var found: String?
    try eventually("a line of metrics") {
      found = lines().dropFirst(before).last
      return found != nil
    }
    var metrics: [String: Int] = [:]
    for field in found!.split(separator: " ") {
      let parts = field.split(separator: "=")
      if parts.count == 2, let value = Int(parts[1]) { metrics[String(parts[0])] = value }
    }
    return metrics
  }

  public func metric(_ name: String) throws -> Int {
    guard let value = try metrics()[name] else { throw TestFailure("there is no metric \(name)") }
    return value
  }
}
