# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Images, audio and video that clients send: `reader.MediaReader` is the way in, `names` guards names and paths.

A route passes the client's value; it gets arrays or an `InvalidRequest` that names the field.
"""
