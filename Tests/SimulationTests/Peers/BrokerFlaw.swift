import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// A fault that a test plants between a broker and its subscribers for the oracle to find.
enum BrokerFlaw: CaseIterable {
  /// Records are delivered twice.
  case repeatsRecords
  /// LIVE, or the end, overtakes earlier records.
  case liveOvertakesRecords
  case endOvertakesRecords
  /// In a compacted topic, records or only deletions are left out.
  case losesNewest
  case withholdsDeletions
  /// A subscriber of a compacted topic gets a LAG for records that the limits retain.
  case lagsWithoutReason
  /// Clients that don't send HELLO stay connected.
  case keepsStrangers

  /// A part of the oracle's report of this fault.
  var symptom: String {
    switch self {
    case .repeatsRecords: "DELIVER of"
    case .liveOvertakesRecords: "a replayed record after LIVE"
    case .endOvertakesRecords: "DELIVER after its end"
    case .losesNewest, .withholdsDeletions: "missed record"
    case .lagsWithoutReason: "are gone"
    case .keepsStrangers: "neither an answer nor an end came"
    }
  }

  /// One in this many batches shows it.
  var frequency: Int { self == .withholdsDeletions ? 1 : 4 }

  /// Whether a scenario can show it.
  func isPossible(in scenario: Scenario) -> Bool {
    switch self {
    case .losesNewest, .withholdsDeletions, .lagsWithoutReason: scenario.isKeyed
    default: true
    }
  }

  func planted(in scenario: Scenario) -> Scenario {
    var scenario = scenario
    if self == .keepsStrangers { scenario.limits.handshake = .seconds(3_600) }
    return scenario
  }

  /// Delivers records to a subscription as a broker with this fault does.
  ///
  /// - Returns: false if the fault doesn't apply and nothing was delivered.
  func deliver(
    _ front: DeliverHeader, _ batch: UnsafeRawBufferPointer, to ledger: SubscriptionLedger
  ) -> Bool {
    switch self {
    case .repeatsRecords:
      ledger.deliver(front, batch)
      ledger.deliver(front, batch)
    case .liveOvertakesRecords where !ledger.isLive:
      ledger.live(Live(nextOffset: ledger.liveOffset))
      ledger.deliver(front, batch)
    case .endOvertakesRecords where ledger.isLive:
      guard let ending = ledger.life?.topic?.epoch.ending else { return false }
      ledger.completed(Complete(ending))
      ledger.deliver(front, batch)
    case .losesNewest where ledger.gaps: break
    case .withholdsDeletions where ledger.gaps && front.count == 1:
      var records = BatchIterator(batch, count: 1, time: 0)
      guard let record = (try? records.next()).flatMap({ $0 }), record.isAttributed,
        let attributes = try? RecordAttributes(record.body), attributes.payload.isEmpty
      else { return false }
    case .lagsWithoutReason where ledger.gaps && ledger.request.lag != .fail:
      let end = front.firstOffset + UInt64(front.count)
      ledger.lag(Lag(missed: end - ledger.next, nextOffset: end))
    default: return false
    }
    return true
  }
}
