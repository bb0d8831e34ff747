// SPDX-License-Identifier: Apache-2.0

// Package journal makes sure that nothing homenode changed stays behind. It stands
// between the caller that acts and the owner of a cgroup: every setting that is replaced
// goes to a file first, fsynced, with what was there before.
//
//	Step ─▶ Applier.Apply ─▶ Owner.Plan ─▶ for each setting:
//	          read · drifted? · append intent, fsync · Owner.Write(Permit) · append done
//
//	Restore: newest first, for each outstanding setting, by what it is now:
//	  what was there before ─▶ nothing to do
//	  what we wrote         ─▶ put back what was there before
//	  anything else         ─▶ another process changed it: leave it, and report it
//
// A thread that started while a setting was ours may have inherited it (Inheritable).
// Such a record keeps all values that were given, and ends only after a search for
// what inherited them:
//
//	intent · write · write back · done ─▶ GiveBack, twice ─▶ end
//	                                        └▶ for each setting found: intent · write · end
//
// Only the journal can make a Permit, and Owner.Write needs one, so no caller can act
// without the journal. It may be killed at any point, also within Restore: the next start
// knows what may have been written. The file is for one boot only, since cgroup settings
// do not outlive one. The file of an older boot is put aside.
//
// It is NOT for: knowing what a cgroup is, or whether an action is wise.
package journal
