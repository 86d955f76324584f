import SluiceLog
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// The topics of these scenarios don't start over by themselves, so that a topic and its epoch are one.
extension Topic {
  var epochNumber: UInt64 { epoch.number }
  var log: TopicLog { epoch.log }
  var condition: SluiceBroker.TopicEpoch.Condition { epoch.condition }
  var ending: Complete.Ending? { epoch.ending }
}
