// SPDX-License-Identifier: Apache-2.0

package freeze

import _ "os/exec"
