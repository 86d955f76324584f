import SluiceLog
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// Topics of these scenarios never restart by themselves, so a topic has one epoch.
extension Topic {
  var epochNumber: UInt64 { epoch.number }
  var log: TopicLog { epoch.log }
  var condition: SluiceBroker.TopicEpoch.Condition { epoch.condition }
  var ending: Complete.Ending? { epoch.ending }
}
