import Foundation

/// Which seeds a test run plays.
///
/// - `SLUICE_SEED=n` plays that one, and prints what happened.
/// - `SLUICE_SEEDS=n` plays 1 to n; `SLUICE_SEEDS=m-n` plays m to n.
/// - Otherwise the usual number: 1 to 1,000 of the great story, in which everything happens, 1 to 200 of each smaller one,
///   and 1 to 80 of the great one with storms.
enum Seeds {
  static let usual = 1_000
  static let few = 200
  static let fewest = 80

  /// The one seed that was asked for by name.
  static var single: UInt64? { variable("SLUICE_SEED").flatMap { UInt64($0) } }

  /// `SLUICE_TRACE=1` tells of every packet and turn as well.
  static var isDetailed: Bool { variable("SLUICE_TRACE") != nil }

  static var chosen: ClosedRange<UInt64> { chosen(orUpTo: usual) }

  /// For stories of one thing alone.
  static var chosenFew: ClosedRange<UInt64> { chosen(orUpTo: few) }

  /// For the great story in variations.
  static var chosenFewest: ClosedRange<UInt64> { chosen(orUpTo: fewest) }

  private static func chosen(orUpTo standard: Int) -> ClosedRange<UInt64> {
    if let single { return single...single }
    guard let text = variable("SLUICE_SEEDS") else { return 1...UInt64(standard) }
    let ends = text.split(separator: "-").compactMap { UInt64($0) }
    switch ends.count {
    case 1 where ends[0] >= 1: return 1...ends[0]
    case 2 where ends[0] <= ends[1]: return ends[0]...ends[1]
    default: fatalError("SLUICE_SEEDS=\(text) is neither a number nor a range such as 1000-1999")
    }
  }

  private static func variable(_ name: String) -> String? {
    ProcessInfo.processInfo.environment[name]
  }
}
